"""What each measure of similarity does not see: the changes of a network that leave it alone."""

INVARIANT_TO = {
    "disagreement": "whatever leaves classes alone",
    "output_cross_entropy": "a shift of all logits",
    "map_distance": "the scale of either network",
    "map_alignment": "scale, and orthogonal transforms of the input",
    "map_transfer": "any affine map of the first network's coefficients",
    "slice_difference": "the order and scale of hidden units",
    "layer_alignment": "rotations, shifts and the scale of a layer's features",
    "procrustes_distance": "rotations, shifts and the scale of a layer's features",
    "canonical_correlation": "any invertible linear map of a layer's features",
    "mutual_neighbours": "rotations, shifts and the scale of a layer's features",
}
#: Measures that are other numbers if the two networks change places.
DIRECTED = frozenset({"output_cross_entropy", "map_transfer"})
#: Measures of which a larger number means more alike networks; of all others, less alike ones.
ALIKE = frozenset({
    "map_alignment", "map_transfer", "layer_alignment", "canonical_correlation",
    "mutual_neighbours",
})  # fmt: skip
