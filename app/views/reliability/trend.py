"""Is it getting better, since what, and what was changed then?"""

from app.answers.reliability import trend
from app.ask.cached import ask
from app.show import page
from app.widgets import filter_bar, fleet_line, page_head

scope = filter_bar.of_store()
answer = trend.answer(ask, scope.selection)
page_head.show(answer.sentence, scope, notes=answer.notes, terms=answer.terms)
fleet = fleet_line.place()
page.headlines(answer.numbers, scope)
page.blocks(answer.blocks, scope)
fleet_line.show(fleet, scope)
