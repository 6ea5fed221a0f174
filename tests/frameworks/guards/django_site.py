"""Django: a guard is a decorator of views, plain and async ones, over WSGI and ASGI."""
# mypy: ignore-errors
# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.urls import path

from nonsuch import django_guard

from .stage import CALLERS, found, mcp, priced, published

settings.configure(ALLOWED_HOSTS=["localhost"], ROOT_URLCONF=__name__)  # a project has DJANGO_SETTINGS_MODULE
guard = django_guard(mcp)


def post_of(request, post):
    if post == "gone":
        raise Http404("gone for good")
    return found(post)


async def post_later(request, post):
    return post_of(request, post)


def price_of(request, amount):
    return {"amount": int(amount) if amount.lstrip("-").isdecimal() else amount}


def work(allowed):
    if allowed.resource.id == "refused-by-host":
        raise PermissionDenied("the host says no")
    return HttpResponse(published(allowed.resource, allowed.principal))


@guard("post:publish", resource=post_of)
def plain(request, post, allowed):
    return work(allowed)


@guard("post:publish", resource=post_later)
async def later(request, post, allowed):
    return work(allowed)


@guard("post:price", arguments=price_of)
def price(request, amount):
    return HttpResponse(priced(int(amount)))


own = django_guard(mcp, principal=lambda request, post: CALLERS.get(request.headers.get("x-user", "")))


@own("post:publish", resource=post_of)
def by_session(request, post, allowed):
    return work(allowed)


def unguarded(request):
    return HttpResponse("open")


urlpatterns = [
    path("plain/<post>", plain),
    path("later/<post>", later),
    path("price/<amount>", price),
    path("session/<post>", by_session),
    path("open", unguarded),
]
