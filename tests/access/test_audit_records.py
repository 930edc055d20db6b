"""What an act leaves in the audit, as people read it."""

from __future__ import annotations

from fila.v1 import admin_pb2
from fila_server.access.admission import Caller
from fila_server.operations.audit import record

ANNA = Caller(None, "anna", key_id="", tenant="", is_admin=True, peer="10.0.0.7")


def test_truth_values_and_masks_are_in_no_languages_own_notation():
    update = admin_pb2.UpdateQueueRequest(queue="orders")
    update.update_mask.paths.extend(["on_enqueue_script", "weights"])

    assert record("UpdateQueue", update, ANNA).details["update_mask"] == "on_enqueue_script, weights"

    pause = admin_pb2.SetKeyPolicyRequest(queue="orders", fairness_key="acme", paused=True)
    assert record("SetKeyPolicy", pause, ANNA).details == {"fairness_key": "acme", "paused": "true"}
