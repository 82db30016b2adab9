package dev.redelayed.jvm;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;

/** A member of the mixed fleet. Each step is reported at once, so that a kill leaves no doubt about what was done before it. */
final class Fleet {
    private Fleet() {
    }

    /** Offers "name:i" for i in [from, to) over some time with random delays; reports before and after each. */
    static void produce(RDelayedQueue<Object> delayed, JsonNode request, Consumer<ObjectNode> report) throws InterruptedException {
        String name = request.get("name").asText();
        int from = request.get("from").asInt();
        int to = request.get("to").asInt();
        double everyMs = request.get("everyMs").asDouble();
        int maxDelay = request.get("maxDelay").asInt();
        Random random = new Random();
        long started = System.nanoTime();
        for (int i = from; i < to; i++) {
            long ahead = (long) ((i - from) * everyMs * 1e6) - (System.nanoTime() - started);
            if (ahead > 1_000_000) Thread.sleep(ahead / 1_000_000);
            int delay = random.nextInt(maxDelay);
            report.accept(event("offering", name, i).put("due", System.currentTimeMillis() + delay));
            try {
                delayed.offer(name + ":" + i, delay, TimeUnit.MILLISECONDS);
                report.accept(event("offered", name, i));
            } catch (RuntimeException unknown) {
                report.accept(event("unknown", name, i).put("why", unknown.toString()));
            }
        }
    }

    /** Takes and reports for ever. */
    static void consume(RBlockingQueue<Object> queue, Consumer<ObjectNode> report) throws InterruptedException {
        for (;;) {
            Object value = queue.take();
            report.accept(Values.JSON.createObjectNode().put("event", "taken").put("value", (String) value).put("at", System.currentTimeMillis()));
        }
    }

    private static ObjectNode event(String event, String name, int i) {
        return Values.JSON.createObjectNode().put("event", event).put("name", name).put("i", i);
    }
}
