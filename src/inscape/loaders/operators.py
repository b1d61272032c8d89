"""The operators that an exported program may call: forward operators of networks, by name.

PyTorch has some 2,200 overloads in ``aten``; many of them are the inner half of another operator
and trust their arguments (indices, sizes) to native code that does not check them. So none is
called that is not listed here, and ``tests/hostile`` calls each of these with hostile arguments.
"""

import operator
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import torch
from torch import Tensor

from inscape.errors import UnsupportedModelError
from inscape.loaders.operator_checks import checked

#: A word is an operator with its overload; where there is no full stop it is ``default``.
_LISTED = """
    abs abs_ acos acosh add.Scalar add.Tensor add_.Scalar add_.Tensor addcdiv addcmul asin asinh
    atan atan2 atanh ceil clamp clamp.Tensor clamp_ clamp_max clamp_max.Tensor clamp_min
    clamp_min.Tensor clip copysign.Tensor cos cosh deg2rad div.Scalar div.Tensor div.Tensor_mode
    div.Scalar_mode div_.Scalar div_.Tensor divide.Tensor erf erfc erfinv exp exp_ exp2 expm1
    float_power.Tensor_Scalar float_power.Tensor_Tensor floor floor_divide floor_divide.Scalar fmax
    fmin fmod.Scalar fmod.Tensor frac heaviside hypot lerp.Scalar lerp.Tensor log log10 log1p log2
    logaddexp logaddexp2 logit maximum minimum mul.Scalar mul.Tensor mul_.Scalar mul_.Tensor
    multiply.Tensor nan_to_num neg neg_ negative positive pow.Scalar pow.Tensor_Scalar
    pow.Tensor_Tensor pow_.Scalar pow_.Tensor rad2deg reciprocal reciprocal_ remainder.Scalar
    remainder.Tensor round round.decimals rsqrt rsqrt_ rsub.Scalar rsub.Tensor sgn sign sin sinc
    sinh special_erfcx special_expit special_log_ndtr special_ndtr special_xlog1py sqrt sqrt_ square
    square_ sub.Scalar sub.Tensor sub_.Scalar sub_.Tensor subtract.Tensor tan tanh tanh_
    true_divide.Tensor trunc xlogy.Tensor

    celu celu_ elu elu_ gelu gelu_ glu hardshrink hardsigmoid hardsigmoid_ hardswish hardswish_
    hardtanh hardtanh_ leaky_relu leaky_relu_ log_sigmoid log_softmax.int _log_softmax mish mish_
    prelu relu relu6 relu6_ relu_ rrelu selu selu_ sigmoid sigmoid_ silu silu_ softmax.int _softmax
    softplus softshrink threshold threshold_

    __and__.Tensor __or__.Tensor __xor__.Tensor all all.dim any any.dim bitwise_and.Tensor
    bitwise_not bitwise_or.Tensor bitwise_xor.Tensor eq.Scalar eq.Tensor ge.Scalar ge.Tensor
    gt.Scalar gt.Tensor isclose isfinite isinf isnan le.Scalar le.Tensor logical_and logical_not
    logical_or logical_xor lt.Scalar lt.Tensor masked_fill.Scalar masked_fill.Tensor
    masked_fill_.Scalar masked_fill_.Tensor ne.Scalar ne.Tensor signbit where.Scalar
    where.ScalarOther where.ScalarSelf where.self

    addbmm addmm addmv addr baddbmm bilinear bmm cdist chain_matmul cosine_similarity dot einsum
    inner kron linalg_cross linalg_matrix_exp linalg_matrix_power linalg_multi_dot linear matmul
    matrix_exp mm mv outer pairwise_distance tensordot vdot _trilinear

    conv1d conv1d.padding conv2d conv2d.padding conv3d conv3d.padding conv_transpose1d
    conv_transpose2d.input conv_transpose3d.input convolution col2im im2col

    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d avg_pool1d
    avg_pool2d avg_pool3d max_pool1d max_pool1d_with_indices max_pool2d max_pool2d_with_indices
    max_pool3d max_pool3d_with_indices

    batch_norm group_norm instance_norm layer_norm native_group_norm native_layer_norm rms_norm
    _native_batch_norm_legit.no_stats _native_batch_norm_legit_no_training alpha_dropout dropout
    feature_alpha_dropout feature_dropout

    embedding gru.input gru_cell lstm.input lstm_cell rnn_relu.input rnn_relu_cell rnn_tanh.input
    rnn_tanh_cell scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu one_hot

    constant_pad_nd pad reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d
    replication_pad2d replication_pad3d channel_shuffle native_channel_shuffle pixel_shuffle
    pixel_unshuffle affine_grid_generator grid_sampler grid_sampler_2d upsample_bicubic2d.vec
    upsample_bilinear2d.vec upsample_linear1d.vec upsample_nearest1d.vec upsample_nearest2d.vec
    upsample_nearest3d.vec upsample_trilinear3d.vec _upsample_nearest_exact1d.vec
    _upsample_nearest_exact2d.vec _upsample_nearest_exact3d.vec _upsample_bicubic2d_aa.vec
    _upsample_bilinear2d_aa.vec

    amax amin aminmax argmax argmin argsort count_nonzero cummax cumprod cumsum diff kthvalue
    linalg_vector_norm logcumsumexp
    logsumexp max max.dim max.other mean mean.dim median median.dim min min.dim min.other nanmean
    nansum norm.Scalar norm.ScalarOpt_dim prod prod.dim_int quantile.scalar sort sort.stable std.dim
    std.correction std_mean.correction std_mean.dim sum sum.dim_IntList topk trace var.correction
    var.dim var_mean.correction var_mean.dim

    alias atleast_2d broadcast_tensors broadcast_to cat chunk clone column_stack concat
    concatenate.default contiguous copy copy_ detach detach_ diag diag_embed diagonal dstack expand
    expand_as fill.Scalar fill_.Scalar fill_.Tensor flatten.using_ints flip fliplr flipud gather
    hsplit.int hstack index.Tensor index_add index_copy index_fill.int_Scalar index_put index_put_
    index_select lift_fresh_copy mH mT matrix_H meshgrid meshgrid.indexing movedim.int
    movedim.intlist narrow numpy_T permute ravel repeat repeat_interleave.self_int reshape
    reshape_as roll rot90 scatter.src scatter.value scatter_.src scatter_.value scatter_add
    scatter_add_ select.int select_scatter slice.Tensor slice_scatter split.Tensor split_with_sizes
    squeeze squeeze.dim squeeze.dims stack swapaxes swapdims t take take_along_dim
    tensor_split.sections tile transpose.int tril triu unbind.int unflatten.int unfold unsqueeze
    view view_as vstack zero_

    arange arange.start arange.start_step bucketize.Tensor eye eye.m full full_like linspace
    new_full new_ones new_zeros ones ones_like scalar_tensor to.device to.dtype to.dtype_layout
    to.other type_as zeros zeros_like _to_copy

    complex fft_irfft fft_irfft2 fft_rfft fft_rfft2 imag real view_as_complex view_as_real

    binary_cross_entropy_with_logits huber_loss kl_div l1_loss mse_loss smooth_l1_loss
"""

#: They return memory as they find it; here it is filled with zeros.
_UNFILLED = "empty.memory_format empty_like empty_permuted new_empty"

#: Its kernel does not compare the shapes of its arguments; here it is made of others that do.
_WEIGHT_NORM = "_weight_norm"

#: They return a size instead of a tensor.
_SIZES = "sym_numel sym_size.int sym_stride.int"

_ARITHMETIC = ("add", "sub", "mul", "floordiv", "mod", "neg", "and_", "or_")
_COMPARISONS = ("eq", "ne", "le", "ge", "lt", "gt")

_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


def _targets(words: str) -> frozenset[str]:
    overloads = (word if "." in word else f"{word}.default" for word in words.split())
    return frozenset(f"torch.ops.aten.{overload}" for overload in overloads)


#: The allowed operators on tensors, as an exported program names them.
OPERATORS = _targets(_LISTED) | _targets(_UNFILLED) | _targets(_WEIGHT_NORM)


@cache
def operation(target: str) -> Callable[..., Any]:
    """Return the function that an exported target names, if it is an allowed one."""
    if target in _targets(_WEIGHT_NORM):
        return _weight_norm
    if target in OPERATORS | _targets(_SIZES):
        name, _, overload = target.removeprefix("torch.ops.aten.").partition(".")
        function = checked(getattr(getattr(torch.ops.aten, name), overload))
        return _filled_with_zeros(function) if target in _targets(_UNFILLED) else function
    name = target.removeprefix("_operator.")
    if target != name and name in (*_ARITHMETIC, *_COMPARISONS):
        return _of_numbers(getattr(operator, name))
    if target != name and name == "getitem":
        return _item
    raise UnsupportedModelError(
        f"it calls {target!r}, which is not among the operators that are run without trust"
    )


def _filled_with_zeros(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @wraps(function)
    def filled(*args: Any, **kwargs: Any) -> Tensor:
        return function(*args, **kwargs).zero_()

    return filled


def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return ``v`` with the length ``g`` in each slice along ``dim``, or as a whole for -1."""
    others = [axis for axis in range(v.ndim) if axis != dim]
    norms: Tensor = torch.linalg.vector_norm(v, dim=others, keepdim=True)
    return v * (g / norms)


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator of Python on numbers that fit into 64 bits.

    On text or lists, or by squaring again and again, a few steps would fill any memory.
    """

    @wraps(function)
    def reckoned(*numbers: Any) -> Any:
        result = function(*(_number(item) for item in numbers))
        return _number(result)

    return reckoned


def _number(value: Any) -> Any:
    if not isinstance(value, _NUMBERS):
        raise UnsupportedModelError(
            f"an exported program must compute sizes with numbers, found a {type(value).__name__}: "
            "export it anew."
        )
    if type(value) is int and not -(2**63) <= value < 2**63:
        raise UnsupportedModelError(
            "an exported program must compute sizes of at most 64 bits, found a larger one: export "
            "it anew."
        )
    return value


def _item(values: Any, place: Any) -> Any:
    if not isinstance(values, tuple | list) or type(place) is not int:
        raise UnsupportedModelError(
            "an exported program must take items of lists by their number, found "
            f"{type(values).__name__} and {type(place).__name__}: export it anew."
        )
    return values[place]
