"""The pages of papers: every table and figure beside ours, made from records alone."""
