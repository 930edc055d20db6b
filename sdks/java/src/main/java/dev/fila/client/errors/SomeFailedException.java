package dev.fila.client.errors;

import java.util.Collections;
import java.util.List;
import java.util.NavigableMap;
import java.util.TreeMap;

/**
 * Some items of a batch failed; the others went well. Code and reason are those of the first that
 * failed.
 */
public class SomeFailedException extends FilaException {
    private static final long serialVersionUID = 1;

    private final List<ItemResult> results;

    /** Makes one of a batch in which at least one item failed. */
    public SomeFailedException(List<ItemResult> results) {
        super(detailsOf(results));
        this.results = List.copyOf(results);
    }

    /** What became of each item, in the batch's order. */
    public List<ItemResult> results() {
        return results;
    }

    /** The errors by position in the batch. */
    public NavigableMap<Integer, FilaException> failures() {
        NavigableMap<Integer, FilaException> failures = new TreeMap<>();
        for (int i = 0; i < results.size(); i++) {
            FilaException error = results.get(i).error();
            if (error != null) {
                failures.put(i, error);
            }
        }
        return Collections.unmodifiableNavigableMap(failures);
    }

    private static ErrorDetails detailsOf(List<ItemResult> results) {
        List<FilaException> errors =
                results.stream().map(ItemResult::error).filter(e -> e != null).toList();
        if (errors.isEmpty()) {
            throw new IllegalArgumentException("no item failed");
        }
        FilaException first = errors.get(0);
        String text =
                errors.size()
                        + " of "
                        + results.size()
                        + " failed; the first: "
                        + first.getMessage();
        return first.details().withMessage(text).causedBy(first);
    }
}
