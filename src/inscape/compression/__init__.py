"""How few local maps would do? Linear regions that points share, and maps merged into clusters."""

from inscape.compression.k_means import Clusters, k_means
from inscape.compression.map_compression import MapCompression, map_compression
from inscape.compression.region_sharing import RegionSharing, region_sharing

__all__ = [
    "Clusters",
    "MapCompression",
    "RegionSharing",
    "k_means",
    "map_compression",
    "region_sharing",
]
