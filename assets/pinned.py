"""What a release keeps as it was when it was made."""

from assets.stage import Made, Site
from saber_dagster import releases


def pinned_table(site: Site, table: str) -> Made | None:
    """A table of the release that the settings name, if that release is complete."""
    release = releases.release_of(site.home.releases, site.settings)
    if not release.complete:
        return None
    release.check_settings(site.settings)
    return Made(release.read(table), {"pinned": True, "release": release.name})
