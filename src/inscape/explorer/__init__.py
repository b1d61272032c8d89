"""The explorer: a local page that shows the exact linear regions of a network, and zooms into them.

``inscape explore`` serves it; nothing here is imported before that. ``subject`` holds what is
explored, ``planes`` the planes, ``raster``, ``cells``, ``details`` and ``segments`` what is
computed of a window, ``wire`` how arrays travel, ``jobs`` who computes when, ``app`` the routes and
``guard`` who may ask; ``static`` is the page itself, plain modules without a build step.
"""
