"""The page of one Boolean function: its class, how hard it is, how often training finds it."""
