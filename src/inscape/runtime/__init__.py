"""How code runs on this machine: compiled kernels, threads, deadlines, progress, extras."""
