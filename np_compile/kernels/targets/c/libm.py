"""Elementary functions of C's libm, and of glibc's libmvec in loops.

With libmvec a loop calls a function that computes 2 to 16 elements at once, and the rest of the
elements go to libm. The two differ in the last places, by no more than `ULP` says.
"""

from __future__ import annotations

# The functions of one and of two operands that libmvec has in both precisions.
UNARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"),
    *("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("cbrt", "erf", "erfc"),
)
BINARY = ("atan2", "hypot", "pow")

# Greatest distance from the exact result, in units of its last place, for f64 and f32: of libm, of
# libmvec and of polynomials.py.
ULP: dict[str, tuple[int, int]] = dict.fromkeys((*UNARY, *BINARY), (4, 4)) | {
    "erf": (4, 5),
    "lgamma": (8, 8),
    "tgamma": (8, 8),
}


def _declaration(name: str, operands: str, real: str, vector: bool) -> str:
    attributes = 'const, simd("notinbranch")' if vector else "const"
    return f"extern {real} {name}({operands}) __attribute__(({attributes}));\n"


def functions(real: str, vector_math: str | None) -> dict[str, str]:
    """The C texts, by name, of the elementary functions on "f32" or "f64" and what they call."""
    suffix = "f" if real == "f32" else ""
    vector = vector_math == "libmvec"
    table = {}
    for names, count in ((UNARY, 1), (BINARY, 2)):
        types, operands = ", ".join([real] * count), ", ".join("ab"[:count])
        listed = ", ".join(f"{real} {operand}" for operand in "ab"[:count])
        for name in names:
            table[name + suffix] = _declaration(name + suffix, types, real, vector)
            table[f"{name}_{real}"] = (
                f"INLINE {real} {name}_{real}({listed}) {{ return {name}{suffix}({operands}); }}\n"
            )
    table[f"fmod{suffix}"] = _declaration(f"fmod{suffix}", f"{real}, {real}", real, False)
    table[f"tgamma{suffix}"] = _declaration(f"tgamma{suffix}", real, real, False)
    table[f"lgamma{suffix}_r"] = f"extern {real} lgamma{suffix}_r({real}, int *);\n"
    return table
