"""Why a test failed, in one word, from its exception."""

from __future__ import annotations

REASONS = {
    "name": "a name that the shim lacks",
    "dtype": "a dtype that torch lacks",
    "option": "a parameter or a case that the shim refuses",
    "error": "an exception, its class or its words",
    "warning": "a warning that is not given, or one too many",
    "type": "another Python type, dtype or attribute",
    "value": "another value, shape or flag",
    "raises": "an exception where NumPy has none",
    "vacuous": "passes while it touches a name that the shim lacks",
    "late": "took too long",
    "crash": "ended the process",
    "lost": "its module could not be loaded as far as it",
}


def reason_of(error: BaseException | None) -> str:
    """The class of a failure: a key of REASONS."""
    name, text = type(error).__name__, str(error)
    if name == "MissingName" or "is not in the shim" in text or "has no submodule" in text:
        return "name"
    if name == "NotSupported":
        return "dtype" if "no torch counterpart" in text or "dtype" in text else "option"
    if name == "_Late":
        return "late"
    if "DID NOT WARN" in text or "Warning" in name or "warning" in text.lower():
        return "warning"
    if "DID NOT RAISE" in text or "not raised" in text or "Regex pattern did not match" in text:
        return "error"
    if isinstance(error, AssertionError):
        low = text.lower()
        return "type" if "dtype" in low or "type" in low or "isinstance" in low else "value"
    return "raises"
