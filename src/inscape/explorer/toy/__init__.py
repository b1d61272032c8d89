"""The toy lab: small networks trained live on points of the plane, with their exact regions.

``setup`` is what can be chosen, ``points`` the data, ``run`` a training that can be stopped and
continued, ``measures`` what is measured at each frame, ``presets`` thirty setups that each show a
result of a paper, and ``trainings`` the runs of all clients.
"""
