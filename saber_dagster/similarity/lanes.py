"""Vectors of 32 numbers for compiled kernels: one operation for all lanes, on any processor.

Whether the compiler turns a loop over a short row into vector operations depends on its heuristics;
these functions are vector operations by definition. A value lives in registers and has the type of its
numbers: uint16, int32, float32 or float64, as the array it was loaded from.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.extending import intrinsic, register_model

LANES = 32
"""Numbers of a vector."""

_ELEMENTS = {
    types.uint16: ir.IntType(16),
    types.int32: ir.IntType(32),
    types.float32: ir.FloatType(),
    types.float64: ir.DoubleType(),
}


class Lanes(types.Type):
    """A vector of ``LANES`` numbers of one type."""

    def __init__(self, number: Any) -> None:
        super().__init__(name=f"Lanes({number})")
        self.number = number

    @property
    def vector(self) -> ir.VectorType:
        """The same for the code generator."""
        return ir.VectorType(_ELEMENTS[self.number], LANES)


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, kind.vector)  # type: ignore[no-untyped-call]


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    struct: Any = cgutils.create_struct_proxy(kind)  # type: ignore[no-untyped-call]
    data = struct(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), Lanes(kind.dtype).vector.as_pointer())


def _broadcast(builder: Any, vector: ir.VectorType, number: Any) -> Any:
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, number, ir.IntType(32)(0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, undefined, mask)


def _operation(define: Callable[..., Any]) -> Any:
    """A function for kernels from one that takes types and returns a signature and its code."""
    return intrinsic(define)


@_operation
def load(typing: Any, array: Any, index: Any) -> Any:
    """The lanes that start at an index (uint64) of an array of one dimension."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, signature.args[0], *args), align=2)

    return Lanes(array.dtype)(array, types.uint64), code


@_operation
def store(typing: Any, array: Any, index: Any, value: Any) -> Any:
    """Write lanes from an index (uint64) on."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, signature.args[0], *args[:2]), align=2)
        return context.get_dummy_value()

    return types.void(array, types.uint64, value), code


@_operation
def fill(typing: Any, number: Any) -> Any:
    """The same number in every lane."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _broadcast(builder, signature.return_type.vector, args[0])

    return Lanes(number)(number), code


def _lane_by_lane(name: str) -> Any:
    """An operation on two vectors of one type."""

    def operation(typing: Any, x: Any, y: Any) -> Any:
        is_float = isinstance(x.number, types.Float)

        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            if name in ("larger", "smaller"):
                compare = builder.fcmp_ordered if is_float else builder.icmp_unsigned
                return builder.select(compare(">" if name == "larger" else "<", *args), *args)
            return getattr(builder, f"f{name}" if is_float else name)(*args)

        return x(x, y), code

    operation.__doc__ = f"Lane by lane {name}."
    return _operation(operation)


add = _lane_by_lane("add")
multiply = _lane_by_lane("mul")
divide = _lane_by_lane("div")
larger = _lane_by_lane("larger")
smaller = _lane_by_lane("smaller")


@_operation
def at_least(typing: Any, x: Any, bound: Any) -> Any:
    """Bit q of the result (uint64): lane q of x, uint16, is at least that of the bound."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        mask = builder.bitcast(builder.icmp_unsigned(">=", *args), ir.IntType(LANES))
        return builder.zext(mask, ir.IntType(64))

    return types.uint64(x, bound), code


def _any(builder: Any, lanes: Any) -> Any:
    """Whether one of the lanes, of a bit each, is set."""
    bits = ir.IntType(LANES)
    return builder.icmp_unsigned("!=", builder.bitcast(lanes, bits), bits(0))


@_operation
def any_equal(typing: Any, x: Any, y: Any) -> Any:
    """Whether a lane of x, int32, equals that of y."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _any(builder, builder.icmp_signed("==", *args))

    return types.boolean(x, y), code


@_operation
def any_larger(typing: Any, x: Any, y: Any) -> Any:
    """Whether a lane of x, float32, is larger than that of y."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _any(builder, builder.fcmp_ordered(">", *args))

    return types.boolean(x, y), code


@_operation
def where_equal(typing: Any, x: Any, y: Any, then: Any, otherwise: Any) -> Any:
    """Lane by lane ``then`` if x equals y, int32, else ``otherwise``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(builder.icmp_signed("==", *args[:2]), *args[2:])

    return then(x, y, then, otherwise), code


@_operation
def round_up(typing: Any, x: Any, scale: Any) -> Any:
    """Lane by lane x * scale, float32, as a uint16 larger by at most 1; 0 if it is 0, 1 if x > 1."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = signature.args[0].vector
        one, zero = (_broadcast(builder, vector, ir.FloatType()(v)) for v in (1.0, 0.0))
        value = builder.select(builder.fcmp_ordered("<", args[0], one), args[0], one)
        wide = ir.VectorType(ir.IntType(32), LANES)
        units = builder.fptosi(builder.fmul(value, args[1]), wide)
        units = builder.add(units, _broadcast(builder, wide, ir.IntType(32)(1)))
        nothing = builder.fcmp_ordered("==", args[0], zero)
        units = builder.select(nothing, ir.Constant(wide, [0] * LANES), units)
        return builder.trunc(units, signature.return_type.vector)

    return Lanes(types.uint16)(x, scale), code


@_operation
def truncate(typing: Any, x: Any) -> Any:
    """Lane by lane a float32, not negative, without its fraction, as an int32."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fptosi(args[0], signature.return_type.vector)

    return Lanes(types.int32)(x), code


@_operation
def to_float(typing: Any, x: Any) -> Any:
    """Lane by lane an int32 as a float32."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sitofp(args[0], signature.return_type.vector)

    return Lanes(types.float32)(x), code


@_operation
def nearer(typing: Any, x: Any, y: Any, distance: Any) -> Any:
    """Bit q of the result (uint64): lane q of x is nearer to that of y than a distance, float32."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        x, y, distance = args
        below = builder.fcmp_ordered("<", builder.fsub(x, y), distance)
        above = builder.fcmp_ordered("<", builder.fsub(y, x), distance)
        mask = builder.bitcast(builder.and_(below, above), ir.IntType(LANES))
        return builder.zext(mask, ir.IntType(64))

    return types.uint64(x, y, distance), code
