"""Files that appear whole or not at all, and files from outside, whose sizes are read first."""
