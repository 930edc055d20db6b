package dev.fila.client.internal;

import java.util.ArrayDeque;

/** Since when the messages in a buffer have waited: one entry a delivery frame, oldest first. */
final class Arrivals {
    private static final class Frame {
        final long atUs;
        int left;

        Frame(long atUs, int count) {
            this.atUs = atUs;
            this.left = count;
        }
    }

    private final ArrayDeque<Frame> frames = new ArrayDeque<>();

    boolean isEmpty() {
        return frames.isEmpty();
    }

    /** When the oldest message arrived; there must be one. */
    long oldestUs() {
        return frames.getFirst().atUs;
    }

    void add(long nowUs, int count) {
        frames.addLast(new Frame(nowUs, count));
    }

    void takeOldest(int count) {
        for (int taken = count; taken > 0 && !frames.isEmpty(); ) {
            Frame oldest = frames.getFirst();
            int part = Math.min(taken, oldest.left);
            oldest.left -= part;
            taken -= part;
            if (oldest.left == 0) {
                frames.removeFirst();
            }
        }
    }

    void dropNewest(int count) {
        for (int dropped = count; dropped > 0 && !frames.isEmpty(); ) {
            Frame newest = frames.getLast();
            int part = Math.min(dropped, newest.left);
            newest.left -= part;
            dropped -= part;
            if (newest.left == 0) {
                frames.removeLast();
            }
        }
    }
}
