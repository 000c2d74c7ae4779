"""SQLAlchemy's suite for dialects, as its documentation for third-party dialects sets it up, with the PostgreSQL dialect that SQLAlchemy has itself."""

import pytest
from sqlalchemy.dialects.postgresql import provision

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403

# citext and hstore, which the tests of the suite do not use.
provision._extensions.clear()
