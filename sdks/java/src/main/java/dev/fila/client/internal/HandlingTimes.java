package dev.fila.client.internal;

import java.util.ArrayDeque;
import java.util.Arrays;

/** The newest samples of how long the program takes for a message, in microseconds. */
public final class HandlingTimes {
    private static final int SAMPLES_MAX = 31;

    private final ArrayDeque<Long> samples = new ArrayDeque<>(SAMPLES_MAX);
    private long medianUs;

    /** How many samples there are, at most 31. */
    public int count() {
        return samples.size();
    }

    /** The lower median; 0 while there is no sample. */
    public long medianUs() {
        return medianUs;
    }

    /** Takes in a sample; the oldest beyond the most goes. */
    public void add(long handlingUs) {
        if (samples.size() == SAMPLES_MAX) {
            samples.removeFirst();
        }
        samples.addLast(handlingUs);
        long[] sorted = samples.stream().mapToLong(Long::longValue).toArray();
        Arrays.sort(sorted);
        medianUs = sorted[(sorted.length - 1) / 2];
    }

    /** Begins anew. */
    public void clear() {
        samples.clear();
        medianUs = 0;
    }
}
