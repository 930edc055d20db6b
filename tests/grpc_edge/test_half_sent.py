"""A message that was begun and does not go on ends its call, where it is the client that does not."""

from tests.native.edgeprobe import HalfSent


def test_a_call_whose_message_does_not_go_on_for_a_minute_is_ended_and_told_what_to_do():
    call = HalfSent(began_s=100)
    assert call.look(160) == ""
    assert "did not go on for 60 s; send it whole" in call.look(161)


def test_while_we_hold_the_window_a_message_has_time_and_a_minute_more():
    call = HalfSent(began_s=100)
    for now_s in range(101, 301):
        assert call.look(now_s, window_held=True) == ""
    assert call.look(360) == ""
    assert "did not go on" in call.look(361)
