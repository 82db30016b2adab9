package dev.redelayed.jvm;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.client.handler.State;

/**
 * The Java side of the tests: one JSON request per line on stdin, {"id": n, "op": ..., ...}, one reply per line on stdout,
 * {"id": n, "result": ...} or {"id": n, "error": text}. Requests run side by side, so that a blocked take holds up nothing.
 * Lines with "event" instead of "id" are news of a fleet member. It ends with its stdin.
 */
public final class Main {
    private static final FileOutputStream OUT = new FileOutputStream(FileDescriptor.out);
    private static final Clients CLIENTS = new Clients();

    private Main() {
    }

    public static void main(String[] args) throws IOException {
        System.setOut(System.err); // what a library prints must not end up between the replies
        ExecutorService pool = Executors.newCachedThreadPool();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = Values.JSON.readTree(line);
            pool.execute(() -> answer(request));
        }
        Runtime.getRuntime().halt(0);
    }

    private static void answer(JsonNode request) {
        ObjectNode reply = Values.JSON.createObjectNode().put("id", request.get("id").asInt());
        try {
            reply.set("result", run(request));
        } catch (Throwable error) {
            StringBuilder text = new StringBuilder(error.toString());
            for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) text.append("; because: ").append(cause);
            reply.put("error", text.toString());
        }
        write(reply);
    }

    private static JsonNode run(JsonNode request) throws Exception {
        switch (request.get("op").asText()) {
            case "ping": return Values.JSON.getNodeFactory().textNode("pong");
            case "hasCodec": return flag(hasCodec(request));
            case "encode": {
                ByteBuf bytes = Codecs.of(request.get("codec")).getValueEncoder().encode(Values.toJava(request.get("value")));
                return Values.JSON.getNodeFactory().binaryNode(ByteBufUtil.getBytes(bytes));
            }
            case "decode": {
                ByteBuf bytes = Unpooled.wrappedBuffer(request.get("bytes").binaryValue());
                return Values.toJson(Codecs.of(request.get("codec")).getValueDecoder().decode(bytes, new State()));
            }
            case "open": CLIENTS.open(request); return null;
            case "close": CLIENTS.close(request); return null;
            case "hold": CLIENTS.hold(request); return null;
            case "destroy": CLIENTS.destroy(request); return null;
            default: break;
        }
        RBlockingQueue<Object> queue = CLIENTS.queue(request);
        switch (request.get("op").asText()) {
            case "add": return flag(queue.add(Values.toJava(request.get("value"))));
            case "take": return Values.toJson(queue.take());
            case "poll": return Values.toJson(queue.poll(request.get("timeout").asLong(), TimeUnit.MILLISECONDS));
            case "drain": {
                List<Object> values = new ArrayList<>();
                queue.drainTo(values);
                return all(values);
            }
            case "list": return all(queue.readAll());
            case "consume": Fleet.consume(queue, Main::write); return null;
            default: break;
        }
        RDelayedQueue<Object> delayed = CLIENTS.delayed(request);
        switch (request.get("op").asText()) {
            case "offer": {
                ObjectNode times = Values.JSON.createObjectNode().put("before", System.currentTimeMillis());
                delayed.offer(Values.toJava(request.get("value")), request.get("delay").asLong(), TimeUnit.MILLISECONDS);
                return times.put("after", System.currentTimeMillis());
            }
            case "delayedSize": return Values.JSON.getNodeFactory().numberNode(delayed.size());
            case "delayedReadAll": return all(delayed.readAll());
            case "delayedContains": return flag(delayed.contains(Values.toJava(request.get("value"))));
            case "delayedPeek": return Values.toJson(delayed.peek());
            case "delayedPoll": return Values.toJson(delayed.poll());
            case "delayedRemove": return flag(delayed.remove(Values.toJava(request.get("value"))));
            case "produce": Fleet.produce(delayed, request, Main::write); return null;
            default: throw new IllegalArgumentException("no such op: " + request.get("op"));
        }
    }

    private static boolean hasCodec(JsonNode request) {
        try {
            Codecs.of(request.get("codec"));
            return true;
        } catch (ClassNotFoundException | NoSuchMethodException missing) {
            return false;
        } catch (ReflectiveOperationException broken) {
            throw new IllegalStateException(broken);
        }
    }

    private static JsonNode flag(boolean value) {
        return Values.JSON.getNodeFactory().booleanNode(value);
    }

    private static JsonNode all(Collection<?> values) throws ReflectiveOperationException {
        var array = Values.JSON.createArrayNode();
        for (Object value : values) array.add(Values.toJson(value));
        return array;
    }

    /** One write per line: a line is written whole or not at all. */
    private static void write(ObjectNode line) {
        try {
            byte[] bytes = (line.toString() + "\n").getBytes(StandardCharsets.UTF_8);
            synchronized (OUT) {
                OUT.write(bytes);
            }
        } catch (IOException gone) {
            Runtime.getRuntime().halt(1); // the process that reads the answers is gone
        }
    }
}
