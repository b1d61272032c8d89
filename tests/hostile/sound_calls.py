"""A sound call of each operator whose arguments must fit each other, to be spoilt one by one.

A tuple is a float tensor of that shape, ``I`` an index tensor, ``B`` a mask.
"""

from typing import Any, NamedTuple


class I(NamedTuple):  # noqa: E742 - as short as what it stands beside
    """Indices of a shape."""

    shape: tuple[int, ...]


class B(NamedTuple):
    """A mask of a shape."""

    shape: tuple[int, ...]


_1D, _2D, _3D = (4, 6, 8), (4, 6, 8, 8), (2, 3, 4, 4, 4)
_RNN = [True, 1, 0.0, False, False, False]
_RECURRENT = {
    "gru": [(5, 4, 6), (1, 4, 3), [(9, 6), (9, 3), (9,), (9,)], *_RNN],
    "lstm": [(5, 4, 6), [(1, 4, 3)] * 2, [(12, 6), (12, 3), (12,), (12,)], *_RNN],
    "rnn_tanh": [(5, 4, 6), (1, 4, 3), [(3, 6), (3, 3), (3,), (3,)], *_RNN],
    "rnn_relu": [(5, 4, 6), (1, 4, 3), [(3, 6), (3, 3), (3,), (3,)], *_RNN],
}
_CELLS = {
    "gru_cell": [(4, 6), (4, 3), (9, 6), (9, 3), (9,), (9,)],
    "lstm_cell": [(4, 6), [(4, 3)] * 2, (12, 6), (12, 3), (12,), (12,)],
    "rnn_tanh_cell": [(4, 6), (4, 3), (3, 6), (3, 3), (3,), (3,)],
    "rnn_relu_cell": [(4, 6), (4, 3), (3, 6), (3, 3), (3,), (3,)],
}
_RESIZED = {
    "upsample_linear1d": [_1D, [4], False, None],
    "upsample_bilinear2d": [_2D, [4, 4], False, None],
    "upsample_bicubic2d": [_2D, [4, 4], False, None],
    "upsample_trilinear3d": [_3D, [2, 2, 2], False, None],
    "upsample_nearest1d": [_1D, [4], None],
    "upsample_nearest2d": [_2D, [4, 4], None],
    "upsample_nearest3d": [_3D, [2, 2, 2], None],
    "_upsample_nearest_exact1d": [_1D, [4], None],
    "_upsample_nearest_exact2d": [_2D, [4, 4], None],
    "_upsample_nearest_exact3d": [_3D, [2, 2, 2], None],
    "_upsample_bicubic2d_aa": [_2D, [4, 4], False, None],
    "_upsample_bilinear2d_aa": [_2D, [4, 4], False, None],
}

#: Arguments by operator and overload.
SOUND: dict[str, list[Any]] = {
    **{f"{name}.input": args for name, args in _RECURRENT.items()},
    **{f"{name}.default": args for name, args in _CELLS.items()},
    **{f"{name}.vec": args for name, args in _RESIZED.items()},
    "conv1d.default": [_1D, (6, 6, 3), (6,), [1], [1], [1], 1],
    "conv2d.default": [_2D, (6, 6, 3, 3), (6,), [1, 1], [1, 1], [1, 1], 1],
    "conv3d.default": [_3D, (3, 3, 2, 2, 2), (3,), [1] * 3, [1] * 3, [1] * 3, 1],
    "conv1d.padding": [_1D, (6, 6, 3), None, [1], "same", [1], 1],
    "conv2d.padding": [_2D, (6, 1, 3, 3), None, [1, 1], "same", [1, 1], 6],
    "conv3d.padding": [_3D, (3, 3, 2, 2, 2), None, [1] * 3, "valid", [1] * 3, 1],
    "conv_transpose1d.default": [_1D, (6, 6, 3), None, [1], [0], [0], 1, [1]],
    "conv_transpose2d.input": [_2D, (6, 6, 3, 3), None, [2, 2], [0, 0], [1, 1], 1, [1, 1]],
    "conv_transpose3d.input": [_3D, (3, 3, 2, 2, 2), None, [1] * 3, [0] * 3, [0] * 3, 1, [1] * 3],
    "convolution.default": [_2D, (6, 6, 3, 3), (6,), [1] * 2, [1] * 2, [1] * 2, False, [0, 0], 1],
    "col2im.default": [(2, 12, 9), [4, 4], [2, 2], [1, 1], [0, 0], [1, 1]],
    "im2col.default": [(2, 3, 4, 4), [2, 2], [1, 1], [0, 0], [1, 1]],
    "grid_sampler.default": [(2, 3, 4, 4), (2, 5, 5, 2), 0, 0, False],
    "grid_sampler_2d.default": [(2, 3, 4, 4), (2, 5, 5, 2), 0, 0, False],
    "affine_grid_generator.default": [(2, 2, 3), [2, 1, 4, 4], False],
    "avg_pool1d.default": [_1D, [2], [2], [0], False, True],
    "avg_pool2d.default": [_2D, [2, 2], [2, 2], [0, 0], False, True, None],
    "avg_pool3d.default": [_3D, [2] * 3, [2] * 3, [0] * 3, False, True, None],
    "max_pool1d.default": [_1D, [2], [2], [0], [1], False],
    "max_pool1d_with_indices.default": [_1D, [2], [2], [0], [1], False],
    "max_pool2d.default": [_2D, [2, 2], [2, 2], [0, 0], [1, 1], False],
    "max_pool2d_with_indices.default": [_2D, [2, 2], [2, 2], [0, 0], [1, 1], False],
    "max_pool3d.default": [_3D, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False],
    "max_pool3d_with_indices.default": [_3D, [2] * 3, [2] * 3, [0] * 3, [1] * 3, False],
    "adaptive_max_pool3d.default": [_3D, [2, 2, 2]],
    "adaptive_max_pool2d.default": [_2D, [2, 2]],
    "reflection_pad1d.default": [_1D, [1, 1]],
    "reflection_pad2d.default": [_2D, [1] * 4],
    "reflection_pad3d.default": [_3D, [1] * 6],
    "replication_pad1d.default": [_1D, [1, 1]],
    "replication_pad2d.default": [_2D, [1] * 4],
    "replication_pad3d.default": [_3D, [1] * 6],
    "pad.default": [_2D, [1] * 4, "circular", None],
    "pixel_shuffle.default": [(2, 4, 3, 3), 2],
    "native_channel_shuffle.default": [(2, 4, 3, 3), 2],
    "native_layer_norm.default": [(4, 6), [6], (6,), (6,), 1e-5],
    "native_group_norm.default": [(2, 6, 4), (6,), (6,), 2, 6, 4, 3, 1e-5],
    "batch_norm.default": [(4, 6), (6,), (6,), (6,), (6,), False, 0.1, 1e-5, False],
    "_native_batch_norm_legit_no_training.default": [(4, 6), *[(6,)] * 4, 0.1, 1e-5],
    "_weight_norm.default": [(4, 3), (4, 1), 0],
    "bmm.default": [(2, 3, 4), (2, 4, 5)],
    "baddbmm.default": [(2, 3, 5), (2, 3, 4), (2, 4, 5)],
    "addbmm.default": [(3, 5), (2, 3, 4), (2, 4, 5)],
    "addmv.default": [(3,), (3, 4), (4,)],
    "tensordot.default": [(4, 6), (6, 3), [1], [0]],
    "bilinear.default": [(4, 6), (4, 6), (2, 6, 6), (2,)],
    "_trilinear.default": [(4, 6), (2, 6, 6), (4, 6), [1, 3], [0], [1, 2], [2, 3], 1],
    "einsum.default": ["ij,jk->ik", [(4, 6), (6, 3)]],
    "scaled_dot_product_attention.default": [*[(2, 2, 4, 8)] * 3, (4, 4), 0.0, False],
    "_scaled_dot_product_flash_attention_for_cpu.default": [*[(2, 2, 4, 8)] * 3, 0.0, False],
    "embedding.default": [(5, 3), I((4,))],
    "one_hot.default": [I((4,)), 3],
    "gather.default": [(4, 6), 1, I((4, 6))],
    "scatter.src": [(4, 6), 1, I((4, 6)), (4, 6)],
    "scatter.value": [(4, 6), 1, I((4, 6)), 2.0],
    "scatter_.src": [(4, 6), 1, I((4, 6)), (4, 6)],
    "scatter_add.default": [(4, 6), 0, I((4, 6)), (4, 6)],
    "scatter_add_.default": [(4, 6), 0, I((4, 6)), (4, 6)],
    "index.Tensor": [(4, 6), [I((3,))]],
    "index_put.default": [(4, 6), [I((3,))], (3, 6), True],
    "index_put_.default": [(4, 6), [I((3,))], (3, 6), False],
    "index_select.default": [(4, 6), 1, I((3,))],
    "index_add.default": [(4, 6), 1, I((2,)), (4, 2)],
    "index_copy.default": [(4, 6), 1, I((2,)), (4, 2)],
    "index_fill.int_Scalar": [(4, 6), 1, I((2,)), 0.5],
    "take.default": [(4, 6), I((3,))],
    "take_along_dim.default": [(4, 6), I((4, 2)), 1],
    "masked_fill.Tensor": [(4, 6), B((4, 6)), ()],
    "masked_fill_.Tensor": [(4, 6), B((4, 6)), ()],
    "where.self": [B((4, 6)), (4, 6), (4, 6)],
    "movedim.intlist": [(4, 6), [0], [1]],
}
