"""Two people on one session: the reader's live view, taking over, and what the one who was taken over sees.

A thread of its own looks at the journal and at the lock, for a disk may hang. Invariants: a reader's state is folded
from what the journal holds and from nothing else; the one who lost the session turns into a reader at once, and what
could not be written is said and kept at hand; nobody takes a living holder's session without having been told whose.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual.content import Content

from runbook.errors import LostError, RunbookError
from runbook.session.following import Follower, News
from runbook.session.lock import Holder
from runbook.session.log import Reading
from runbook.session.opening import give_way, take_over
from runbook.text import Text
from runbook.tui.actions import key_of
from runbook.tui.deeds import why
from runbook.tui.words import word
from runbook.whereabouts import moment

if TYPE_CHECKING:
    from runbook.tui.app import RunbookApp

LOOK = 1.0
"""Seconds between two looks at the journal of somebody else: what is added is seen within two."""
CHECK = 3
"""Looks between two checks that the session is still ours."""


class Handing:
    """The hand-over of one app's session. holder: who writes it, as far as a reader knows. unwritten: what was lost."""

    def __init__(self, app: RunbookApp, trouble: Callable[[BaseException], None]) -> None:
        """Work for `app`. trouble: hears of what failed."""
        self.app, self._trouble = app, trouble
        self.holder: Holder | None = None
        self.unwritten: list[str] = []
        self._follower: Follower | None = None
        self._over = threading.Event()
        self._giving_way = False

    def start(self) -> None:
        """Begin to look; a session in memory is nobody else's."""
        if self.app.desk.folder:
            threading.Thread(target=self._watch, name="handing", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def _watch(self) -> None:
        """Look, on a thread of its own, and hand what is new to the app's thread."""
        desk, looks = self.app.desk, 0
        complained = ""
        while not self._over.wait(LOOK if looks else 0.0):
            looks += 1
            follower = self._follower
            try:
                if not desk.reads:
                    if looks % CHECK == 0 and not desk.held() and not desk.reads:
                        self.app.inbox.put(lambda: self.lost(None))
                elif follower is None:
                    follower = Follower(desk.folder)
                    self.app.inbox.put(lambda follower=follower: self._caught_up(follower))
                else:
                    news = follower.look()
                    self.app.inbox.put(lambda follower=follower, news=news: self._heard(follower, news))
            except (RunbookError, OSError) as error:
                words = why(error)
                if words != complained:
                    complained = words
                    self.app.inbox.put(lambda words=words: self.app.say(words, bad=True))

    def _word(self, key: str, /, **values: object) -> str:
        return word(key, self.app.desk.language, **values)

    def _who(self, holder: Holder | None) -> str:
        """Return who holds the session, where and since when, in the language in force."""
        return self._word("nobody") if holder is None else self._word("holder", **holder.parts())

    def _say(self, words: Text) -> None:
        self.app.say(words.say(self.app.desk.language), bad=True)

    def _caught_up(self, follower: Follower) -> None:
        """Take what a follower read at first; from here on it brings what is new."""
        if self.app.desk.reads and self._follower is None:
            self._follower, self.holder = follower, follower.holder
            self.app.desk.hand(Reading(), follower.records)
            if self._giving_way:
                self._giving_way = False
                who = self._who(self.holder) if self.holder is not None else self._word("somebody")
                self.app.say(self._word("taken_from_you", who=who), bad=True)

    def _heard(self, follower: Follower, news: News) -> None:
        """Take what is new, unless the session is ours by now."""
        desk = self.app.desk
        if follower is not self._follower or not desk.reads:
            return
        self.holder = news.holder
        if news.anew:
            desk.hand(Reading(), news.records)
        else:
            for record in news.records:
                desk.take_in(record)
        for words in news.said:
            self._say(words)

    def head(self) -> str:
        """Return what the head says to a reader, "" for who writes."""
        if not self.app.desk.reads:
            return ""
        if self.holder is not None:
            return self._word("read_only", **self.holder.parts())
        key = "read_only_free" if self._follower is not None else "read_only_soon"
        return self._word(key, key=key_of("reader", "app.take_over"))

    def refusal(self) -> str:
        """Return why a reader cannot do what would write."""
        return self._word("reader_refused", who=self._who(self.holder), key=key_of("reader", "app.take_over"))

    def lost(self, error: LostError | None) -> None:
        """Turn into a reader: somebody took the session over. error: what could not be written, None for nothing."""
        if error is not None and error.what:
            self.unwritten.append(error.what)
            self.app.say(self._word("unwritten", what=error.what), bad=True)
        if not self.app.desk.reads and not self._giving_way:
            self._giving_way, self._follower, self.holder = True, None, None
            self.app.hands.do(lambda: give_way(self.app.desk), self._gave_way)

    def _gave_way(self, result: Any) -> None:
        if isinstance(result, BaseException):
            self._giving_way = False
            self._trouble(result)
        self.app.asking.forget()
        self.app.refresh_view()

    def ask(self) -> None:
        """Ask whether to take the session over; where nobody holds it, it is taken at once."""
        from runbook.tui.dialogs import Choose

        if not self.app.desk.reads:
            self.app.say(self._word("yours"))
            return
        holder = self.holder
        if holder is None:
            self._take(None)
            return
        view = self.app.view()
        last = self.app.desk.state.changed
        said = view.word("take_over_hint", ago=_ago(time.time() - last).say(view.language), time=moment(last))
        choices = [(key, Content(view.word(key))) for key in ("take_over_no", "take_over_yes")]
        title = view.word("take_over_title", who=self._who(holder))
        self.app.push_screen(
            Choose(view, title, choices, said), lambda key: self._take(holder) if key == "take_over_yes" else None
        )

    def _take(self, holder: Holder | None) -> None:
        self.app.hands.do(lambda: take_over(self.app.desk, holder), self._took)

    def _took(self, result: Any) -> None:
        if isinstance(result, BaseException):
            self._trouble(result)
            return
        self._follower, self.holder = None, None
        self.app.say(self._word("taken"))
        self.app.go_on()
        self.app.refresh_view()


def _ago(seconds: float) -> Text:
    """Return how long ago something was, in minutes or seconds."""
    if seconds >= 120:
        return Text(f"{int(seconds // 60)} min", f"{int(seconds // 60)} 分钟")
    return Text(f"{max(0, int(seconds))} s", f"{max(0, int(seconds))} 秒")
