package dev.redelayed.jvm;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** The Redisson clients of this process and the delayed queues they hold. */
final class Clients {
    private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();
    private final Map<String, RDelayedQueue<Object>> held = new ConcurrentHashMap<>();

    /** {"client": name, "url": ..., "prefix": what the name mapper puts in front of names}. */
    void open(JsonNode request) throws ReflectiveOperationException {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setThreads(4);
        config.setNettyThreads(4);
        SingleServerConfig server = config.useSingleServer().setAddress(request.get("url").asText());
        server.setConnectionPoolSize(16).setConnectionMinimumIdleSize(1);
        if (request.has("prefix")) setNameMapper(config, server, request.get("prefix").asText());
        clients.put(clientOf(request), Redisson.create(config));
    }

    void close(JsonNode request) {
        held.keySet().removeIf(key -> key.startsWith(clientOf(request) + "\n"));
        clients.remove(clientOf(request)).shutdown();
    }

    RBlockingQueue<Object> queue(JsonNode request) throws ReflectiveOperationException {
        return clients.get(clientOf(request)).getBlockingQueue(request.get("queue").asText(), Codecs.of(request.get("codec")));
    }

    /** Redisson delivers a queue exactly as long as such an object lives. */
    void hold(JsonNode request) throws ReflectiveOperationException {
        RDelayedQueue<Object> delayed = clients.get(clientOf(request)).getDelayedQueue(queue(request));
        if (held.putIfAbsent(keyOf(request), delayed) != null) throw new IllegalStateException("held already");
    }

    void destroy(JsonNode request) {
        delayed(request).destroy();
        held.remove(keyOf(request));
    }

    RDelayedQueue<Object> delayed(JsonNode request) {
        RDelayedQueue<Object> delayed = held.get(keyOf(request));
        if (delayed == null) throw new IllegalStateException("not held: " + request.get("queue"));
        return delayed;
    }

    private static String clientOf(JsonNode request) {
        return request.path("client").asText("main");
    }

    private static String keyOf(JsonNode request) {
        return clientOf(request) + "\n" + request.get("queue").asText() + "\n" + request.get("codec");
    }

    /** The setting moved to Config, and the interface to another package. */
    private static void setNameMapper(Config config, SingleServerConfig server, String prefix) throws ReflectiveOperationException {
        for (Object holder : new Object[] {config, server}) for (Method method : holder.getClass().getMethods()) {
            if (!method.getName().equals("setNameMapper")) continue;
            Class<?> type = method.getParameterTypes()[0];
            method.invoke(holder, Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, called, args) -> {
                switch (called.getName()) {
                    case "map": return prefix + args[0];
                    case "unmap": return ((String) args[0]).substring(prefix.length());
                    case "hashCode": return System.identityHashCode(proxy);
                    case "equals": return proxy == args[0];
                    default: return "prefix " + prefix;
                }
            }));
            return;
        }
        throw new NoSuchMethodException("setNameMapper");
    }
}
