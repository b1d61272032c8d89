"""Pages of papers: every table and figure beside ours, made from records alone."""

from inscape.report.paper.page import paper_page, write_pages
from inscape.report.paper.reproduction import reproduction_pages, save_pages

__all__ = ["paper_page", "reproduction_pages", "save_pages", "write_pages"]
