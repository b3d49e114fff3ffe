"""Cron expressions with a time zone, as schedules have them: `TZ=Europe/Berlin 0 3 * * 1`."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from localvertex.api.rest.errors import invalid

_MAX_LENGTH = 1000

_PREFIX = re.compile(r"(?:CRON_TZ|TZ)=(?P<zone>\S*)\s+(?P<expression>.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Cron:
    """The instants at which a schedule fires. Without a prefix the zone is UTC."""

    expression: str
    zone: ZoneInfo

    @classmethod
    def parse(cls, text: str) -> "Cron":
        """Read the field `cron`.

        Raises:
            ApiError: It is not a cron expression, its time zone is unknown, or it never fires.
        """
        if len(text) > _MAX_LENGTH:
            raise invalid(f"cron {text[:100]!r}...: expected at most {_MAX_LENGTH} characters")
        match = _PREFIX.fullmatch(text.strip())
        name, expression = (match["zone"], match["expression"].strip()) if match else ("UTC", text.strip())
        try:
            zone = ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise invalid(f"cron {text[:100]!r}: {name[:60]!r} is not in the IANA time zone database") from None
        if len(expression.split()) != 5:
            raise invalid(
                f"cron {text[:100]!r}: expected five fields, e.g. '0 3 * * 1' or 'TZ=Europe/Berlin 0 3 * * 1'"
            )
        cron = cls(expression=expression, zone=zone)
        try:
            cron.after(datetime.now(UTC))
        except CronSimError as error:
            raise invalid(f"cron {text[:100]!r}: {error}") from None
        return cron

    def after(self, moment: datetime) -> datetime:
        """Return the first instant after a moment, in UTC.

        On days when clocks change it follows Debian's cron: an instant in the skipped hour fires right after it, one in
        the repeated hour fires once, and only hourly schedules follow the real hours.

        Raises:
            ApiError: No instant before the year 10000 matches.
        """
        try:
            return next(CronSim(self.expression, moment.astimezone(self.zone))).astimezone(UTC)
        except StopIteration:
            raise invalid(f"cron {self.expression!r}: it never fires, because no such day exists") from None
        except (OverflowError, ValueError):
            raise invalid(f"cron {self.expression!r}: it does not fire after {moment.isoformat()}") from None
