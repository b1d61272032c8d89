"""The explorer: a local page that shows the exact linear regions of a network, and zooms into them.

``inscape explore`` serves it; nothing here is imported before that. ``subject`` holds what is
explored, ``planes`` the planes, ``raster``, ``cells``, ``details`` and ``segments`` what is
computed of a window, ``wire`` how arrays travel, ``jobs`` who computes when, ``routes`` what each
view of the page asks, ``app`` answers and ``guard`` who may ask; ``static`` is the page itself,
plain modules without a build step, with one module for each view in ``static/views``.
"""
