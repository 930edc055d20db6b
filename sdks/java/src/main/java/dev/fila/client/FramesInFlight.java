package dev.fila.client;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Frames of enqueues that are sent and not answered. Its producer's lock guards it. */
final class FramesInFlight {
    /**
     * A second frame of at least so many leaves beside the first: while the broker syncs one, the
     * callers of the other are served. Smaller ones cost more than the wait does.
     */
    static final int SECOND_FRAME_LEAST = 32;

    private final Map<Long, Frame> frames = new LinkedHashMap<>();

    void add(long sequence, Frame frame) {
        frames.put(sequence, frame);
    }

    @Nullable Frame take(long sequence) {
        return frames.remove(sequence);
    }

    List<Frame> takeAll() {
        List<Frame> all = new ArrayList<>(frames.values());
        frames.clear();
        return all;
    }

    int count() {
        return frames.size();
    }

    boolean isEmpty() {
        return frames.isEmpty();
    }

    @Nullable Frame oldest() {
        return isEmpty() ? null : frames.values().iterator().next();
    }

    /** Whether a frame of so many messages is the second one, and large enough for it. */
    boolean wantsSecond(int messages) {
        Frame first = oldest();
        return first != null
                && frames.size() == 1
                && messages >= Math.max(SECOND_FRAME_LEAST, first.messages.size());
    }
}
