"""Names of Python's own modules, and of NumPy, that are gone, and what is written today.

Sources: "What's New In Python" of each version (3.8 to 3.13), "Removed"; NumPy's release notes of
1.24 and 2.0, "Expired deprecations".
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import distributions

_Version = tuple[int, ...]
_ABSTRACT = (
    *("AsyncGenerator", "AsyncIterable", "AsyncIterator", "Awaitable", "ByteString", "Callable"),
    *("Collection", "Container", "Coroutine", "Generator", "Hashable", "ItemsView", "Iterable"),
    *("Iterator", "KeysView", "Mapping", "MappingView", "MutableMapping", "MutableSequence"),
    *("MutableSet", "Reversible", "Sequence", "Set", "Sized", "ValuesView"),
)
# What has them no more, since when, and what is written today, from a module where it has a dot.
_NAMES: Mapping[str, tuple[_Version, str]] = {
    "asyncio.coroutine": ((3, 11), "async def in the place of the decorator"),
    "base64.decodestring": ((3, 9), "base64.decodebytes"),
    "base64.encodestring": ((3, 9), "base64.encodebytes"),
    "cgi.escape": ((3, 8), "html.escape"),
    **{f"collections.{it}": ((3, 10), f"collections.abc.{it}") for it in _ABSTRACT},
    "fractions.gcd": ((3, 9), "math.gcd"),
    "inspect.formatargspec": ((3, 11), "inspect.signature"),
    "inspect.getargspec": ((3, 11), "inspect.getfullargspec"),
    "itertools.ifilter": ((3, 0), "filter"),
    "itertools.imap": ((3, 0), "map"),
    "itertools.izip": ((3, 0), "zip"),
    "itertools.izip_longest": ((3, 0), "itertools.zip_longest"),
    "os.getcwdu": ((3, 0), "os.getcwd"),
    "platform.linux_distribution": ((3, 8), "platform.freedesktop_os_release"),
    "string.letters": ((3, 0), "string.ascii_letters"),
    "string.lowercase": ((3, 0), "string.ascii_lowercase"),
    "string.maketrans": ((3, 0), "str.maketrans"),
    "string.uppercase": ((3, 0), "string.ascii_uppercase"),
    "sys.maxint": ((3, 0), "sys.maxsize"),
    "sys.setcheckinterval": ((3, 9), "sys.setswitchinterval"),
    "time.clock": ((3, 8), "time.perf_counter"),
}
_MODULES: Mapping[str, tuple[_Version, str]] = {
    "ConfigParser": ((3, 0), "import configparser"),
    "Queue": ((3, 0), "import queue"),
    "StringIO": ((3, 0), "from io import StringIO"),
    "cPickle": ((3, 0), "import pickle"),
    "urllib2": ((3, 0), "import urllib.request"),
    "dummy_threading": ((3, 9), "import threading"),
    "imp": (
        (3, 12),
        "import importlib, with importlib.reload, and importlib.util.find_spec for find_module",
    ),
    "distutils": (
        (3, 12),
        "shutil or packaging.version for it; pip install setuptools brings it as well",
    ),
    "imghdr": ((3, 13), "from PIL import Image, with Image.open(file).format"),
    "pipes": ((3, 13), "import shlex, with shlex.quote"),
    "cgi": ((3, 13), "import html, with html.escape, or urllib.parse"),
    "crypt": ((3, 13), "import hashlib"),
    "telnetlib": ((3, 13), "import socket"),
}
# Of NumPy: gone since, back since where it is, and what is written today.
_FOREVER = (99,)
_OF_NUMPY: Mapping[str, tuple[_Version, _Version, str]] = {
    **{it: ((1, 24), _FOREVER, it) for it in ("int", "float", "complex", "object", "str")},
    "bool": ((1, 24), (2,), "bool"),
    "long": ((1, 24), (2,), "int"),
    "unicode": ((1, 24), _FOREVER, "str"),
    "Inf": ((2,), _FOREVER, "{}.inf"),
    "Infinity": ((2,), _FOREVER, "{}.inf"),
    "infty": ((2,), _FOREVER, "{}.inf"),
    "PINF": ((2,), _FOREVER, "{}.inf"),
    "NINF": ((2,), _FOREVER, "-{}.inf"),
    "NaN": ((2,), _FOREVER, "{}.nan"),
    "NAN": ((2,), _FOREVER, "{}.nan"),
    "float_": ((2,), _FOREVER, "{}.float64"),
    "complex_": ((2,), _FOREVER, "{}.complex128"),
    "string_": ((2,), _FOREVER, "{}.bytes_"),
    "unicode_": ((2,), _FOREVER, "{}.str_"),
    "cumproduct": ((2,), _FOREVER, "{}.cumprod"),
    "product": ((2,), _FOREVER, "{}.prod"),
    "alltrue": ((2,), _FOREVER, "{}.all"),
    "sometrue": ((2,), _FOREVER, "{}.any"),
    "round_": ((2,), _FOREVER, "{}.round"),
    "asfarray": ((2,), _FOREVER, "{}.asarray, with dtype=float"),
}
GONE_WORDS = frozenset({*_OF_NUMPY, *(it.rpartition(".")[2] for it in _NAMES)})


def gone_module(name: str, python: _Version = sys.version_info[:2]) -> tuple[str, str]:
    """Since when a module is gone (`Python 3.12`), and what to write; empty of all others."""
    since, today = _MODULES.get(name, (_FOREVER, ""))
    return _told(since, today) if python >= since else ("", "")


def gone_name(
    module: str,
    name: str,
    *,
    written: str = "",
    python: _Version = sys.version_info[:2],
    numpy: str = "",
) -> tuple[str, str]:
    """The same of a name of a module.

    Args:
        module: Dotted.
        name: Of it.
        written: How the text calls the module, `np`; empty as it is called.
        python: The ranks' version.
        numpy: Theirs of NumPy; empty where it is not known.
    """
    if module == "numpy":
        gone, back, today = _OF_NUMPY.get(name, (_FOREVER, _FOREVER, ""))
        digits = [int(it) for it in numpy.split(".")[:2] if it.isdecimal()]
        if not digits or not gone <= tuple(digits) < back:
            return "", ""
        since = ".".join(map(str, gone)) + (".0" if len(gone) == 1 else "")
        return f"NumPy {since}", f"write {today.format(written or 'numpy')}"
    since_python, today = _NAMES.get(f"{module}.{name}", (_FOREVER, ""))
    return _told(since_python, today) if python >= since_python else ("", "")


@lru_cache(maxsize=4)
def numpy_version(search_path: tuple[str, ...]) -> str:
    """That of the NumPy which is found there; empty where none is."""
    found = next(iter(distributions(name="numpy", path=list(search_path))), None)
    return found.version if found else ""


def _told(since: _Version, today: str) -> tuple[str, str]:
    return f"Python {'.'.join(map(str, since))}", f"write {today}"
