"""Check, in tests only, what the signatures of equations and heads say about tensors (jaxtyping).

The package imports the names of jaxtyping for type checkers only, so that users need not install
it. Here, these names are put into its modules before they run; then every function and dataclass
whose annotations have a shape is replaced by one that checks them at each call.
"""

import sys
from collections.abc import Sequence
from dataclasses import is_dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype

PACKAGES = tuple(
    f"syncattn_fairseq.{name}" for name in ("functional", "modules.heads", "modules.positions")
)
NAMES = {
    name: getattr(jaxtyping, name) for name in ("Bool", "Complex", "Float", "Int", "Num", "Shaped")
}
#: An int will do for a float.
check = jaxtyping.jaxtyped(typechecker=beartype(conf=BeartypeConf(is_pep484_tower=True)))


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(PACKAGES):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(NAMES)
        super().exec_module(module)
        _check_contents(module, module.__name__)


def _check_contents(owner: ModuleType | type, module: str) -> None:
    """Let what is defined in a module or class check its arguments."""
    for name, thing in [*vars(owner).items()]:
        if getattr(thing, "__module__", None) != module:
            continue  # imported from elsewhere
        if isinstance(thing, type):
            _check_contents(thing, module)
            if is_dataclass(thing) and _has_shapes(thing):
                check(thing)
        elif isinstance(thing, FunctionType) and _has_shapes(thing):
            setattr(owner, name, check(thing))


def _has_shapes(thing: Any) -> bool:
    if not any("[Tensor," in str(hint) for hint in thing.__annotations__.values()):
        return False
    get_type_hints(thing)  # jaxtyping would check nothing where it does not know a name
    return True


def check_shapes() -> None:
    """Check the modules that are imported from now on."""
    assert not any(name.startswith(PACKAGES) for name in sys.modules)
    sys.meta_path.insert(0, _Finder())
