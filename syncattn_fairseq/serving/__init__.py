"""A model as a service over HTTP: translations, parses, links and pictures, and a page to type in.

It needs the extra ``serve``.
"""

from .server import bind, serve
from .service import Limits, Service
