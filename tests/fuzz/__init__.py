"""A differential fuzzer: random calls of all instruments, each compared with brute force."""
