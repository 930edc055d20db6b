package dev.fila.client.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.yaml.snakeyaml.Yaml;

/** Replays the steps that all SDKs replay. */
class AdaptivePrefetchTest {
    private static final Path STEPS = Path.of("../conformance/prefetch.yaml");

    @TestFactory
    @SuppressWarnings("unchecked")
    Stream<DynamicTest> everyStepIsAnsweredAsInTheOtherLanguages() throws IOException {
        try (Reader reader = Files.newBufferedReader(STEPS)) {
            Map<String, Object> file = new Yaml().load(reader);
            List<Map<String, Object>> scenarios = (List<Map<String, Object>>) file.get("scenarios");
            assertFalse(scenarios.isEmpty());
            return scenarios.stream()
                    .map(
                            scenario ->
                                    DynamicTest.dynamicTest(
                                            (String) scenario.get("name"),
                                            () ->
                                                    replay(
                                                            (List<Map<String, Object>>)
                                                                    scenario.get("steps"))));
        }
    }

    private static void replay(List<Map<String, Object>> steps) {
        PrefetchControl control = new AdaptivePrefetch(AdaptivePrefetch.BUFFER_US);
        for (Map<String, Object> step : steps) {
            PrefetchControl.Decision decision = play(control, step);
            PrefetchControl.Decision expected =
                    step.containsKey("window")
                            ? new PrefetchControl.Decision(
                                    number(step, "window").intValue(),
                                    number(step, "give_back").intValue())
                            : null;
            assertEquals(expected, decision, step::toString);
            if (step.containsKey("check_at")) {
                Long checkAt = step.get("check_at") == null ? null : number(step, "check_at");
                Long actual =
                        control.checkAtUs().isPresent() ? control.checkAtUs().getAsLong() : null;
                assertEquals(checkAt, actual, step::toString);
            }
            if (step.containsKey("median_us")) {
                assertEquals(number(step, "median_us"), control.times().medianUs(), step::toString);
            }
        }
    }

    private static PrefetchControl.Decision play(
            PrefetchControl control, Map<String, Object> step) {
        long at = number(step, "at");
        Long loop = step.containsKey("loop") ? number(step, "loop") : null;
        int count = step.containsKey("count") ? number(step, "count").intValue() : 0;
        switch ((String) step.get("event")) {
            case "joined":
                return control.joined(at, loop, number(step, "size").intValue());
            case "left":
                return control.left(at, loop);
            case "delivered":
                return control.delivered(at, count);
            case "began":
                control.began(at, loop, count);
                return null;
            case "idle":
                return control.idle(at, loop);
            case "settled":
                return control.settled(at, loop, count);
            case "answered":
                control.answered(at, loop);
                return null;
            case "dropped":
                control.dropped(count);
                return null;
            case "handled":
                Long afterUs = step.containsKey("after_us") ? number(step, "after_us") : null;
                return control.handled(at, number(step, "handling_us"), loop, afterUs);
            case "tick":
                return control.tick(at);
            default:
                throw new IllegalArgumentException(step.toString());
        }
    }

    private static Long number(Map<String, Object> step, String name) {
        return ((Number) step.get(name)).longValue();
    }
}
