package dev.fila.client;

import dev.fila.client.errors.FilaException;
import dev.fila.client.errors.LeaseLostException;
import dev.fila.client.errors.MessageNotFoundException;
import dev.fila.client.internal.Answer;
import dev.fila.client.internal.ErrorMapping;
import dev.fila.v1.ConsumeSessionRequest;
import dev.fila.v1.ItemStatus;
import dev.fila.v1.Settle;
import dev.fila.v1.SettleItem;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Leases that are settled alike and together. */
final class SettleFrame {
    private static final System.Logger LOG = System.getLogger("dev.fila.client");

    /** One of them. */
    record Item(String messageId, long leaseId, Answer<Void> answer) {}

    final long sequence;
    final Verdict verdict;
    final List<Item> items = new ArrayList<>();

    /** It was sent before and the answer was lost. */
    boolean repeated;

    SettleFrame(long sequence, Verdict verdict) {
        this.sequence = sequence;
        this.verdict = verdict;
    }

    /** As a session carries it. */
    ConsumeSessionRequest sessionRequest() {
        Settle.Builder settle =
                Settle.newBuilder()
                        .setSequence(sequence)
                        .setError(verdict.error())
                        .setDeadLetter(verdict.isDeadLetter())
                        .setRelease(verdict.isRelease())
                        .addAllFeedback(verdict.feedback());
        if (verdict.delayMs() != null) {
            settle.setDelayMs(verdict.delayMs());
        }
        items.forEach(item -> settle.addLeaseIds(item.leaseId()));
        ConsumeSessionRequest.Builder request = ConsumeSessionRequest.newBuilder();
        return (verdict.isAck() ? request.setAck(settle) : request.setNack(settle)).build();
    }

    /** As calls carry it. */
    List<SettleItem> callItems() {
        List<SettleItem> wire = new ArrayList<>(items.size());
        for (Item item : items) {
            SettleItem.Builder one =
                    SettleItem.newBuilder()
                            .setMessageId(item.messageId())
                            .setLeaseId(item.leaseId())
                            .setError(verdict.error())
                            .setDeadLetter(verdict.isDeadLetter())
                            .setRelease(verdict.isRelease())
                            .addAllFeedback(verdict.feedback());
            if (verdict.delayMs() != null) {
                one.setDelayMs(verdict.delayMs());
            }
            wire.add(one.build());
        }
        return wire;
    }

    /**
     * Whether a second time could settle somebody else's delivery: lease 0 means whatever is
     * current.
     */
    boolean namesNoLease() {
        return items.stream().anyMatch(item -> item.leaseId() == 0);
    }

    /** It is durable, but for those in {@code statusByIndex}. */
    void answer(Map<Integer, ItemStatus> statusByIndex, Answer.Batch answers) {
        for (int i = 0; i < items.size(); i++) {
            ItemStatus status = statusByIndex.get(i);
            FilaException error = status == null ? null : errorOf(status, items.get(i));
            if (error == null) {
                answers.complete(items.get(i).answer(), null);
            } else {
                refuse(items.get(i), error, answers);
            }
        }
    }

    /** None of it could be settled. */
    void fail(FilaException error, Answer.Batch answers) {
        items.forEach(item -> refuse(item, error, answers));
    }

    private static void refuse(Item item, FilaException error, Answer.Batch answers) {
        if (!item.answer().isWatched()) {
            LOG.log(
                    Level.INFO,
                    "settlement refused, and nobody asked how it went: {0}",
                    error.getMessage());
        }
        answers.fail(item.answer(), error);
    }

    private @Nullable FilaException errorOf(ItemStatus status, Item item) {
        Map<String, String> known =
                Map.of(
                        "message_id",
                        item.messageId(),
                        "lease_id",
                        Long.toUnsignedString(item.leaseId()));
        FilaException error = ErrorMapping.ofItem(status, known);
        // The ack whose answer was lost did its work. Or its lease had ended: then the message
        // comes again, as it may at any time. To call it refused would make the program undo work
        // of which nobody else knows.
        boolean isGone =
                error instanceof LeaseLostException || error instanceof MessageNotFoundException;
        return repeated && verdict.isAck() && isGone ? null : error;
    }
}
