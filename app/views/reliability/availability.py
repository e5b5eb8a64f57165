"""How much capacity was there, and how fast are nodes repaired?"""

from app.answers.reliability import availability
from app.ask.cached import whole
from app.show import page
from app.widgets import filter_bar, fleet_line, page_head

SHOWN = 4
"""Numbers above the chart; the others stand below it."""
scope = filter_bar.of_store()
answer = whole(availability.answer, scope.selection)
page_head.show(answer.sentence, scope, notes=answer.notes, terms=answer.terms)
fleet = fleet_line.place()
page.headlines(answer.numbers[:SHOWN], scope)
page.blocks(answer.blocks[:1], scope)
page.headlines(answer.numbers[SHOWN:], scope)
page.blocks(answer.blocks[1:], scope)
fleet_line.show(fleet, scope)
