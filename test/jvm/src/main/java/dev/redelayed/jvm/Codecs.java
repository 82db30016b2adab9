package dev.redelayed.jvm;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Constructor;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.redisson.client.codec.Codec;

/** Codecs by the name of their class, with or without "Codec" at its end, found by reflection, because not every Redisson has all of them. */
final class Codecs {
    private static final String[] PACKAGES = {"org.redisson.client.codec.", "org.redisson.codec."};
    private static final Map<String, Codec> CACHE = new TreeMap<>();

    private Codecs() {
    }

    /**
     * {"name": "String"}; wrappers take {"inner": codec}, TypedJsonJackson {"type": class}, Kryo5 {"allowed": [classes],
     * "references": flag}, Composite {"inner": codec of queue elements}.
     */
    static synchronized Codec of(JsonNode spec) throws ReflectiveOperationException {
        String key = spec.toString();
        Codec codec = CACHE.get(key);
        if (codec == null) {
            codec = create(spec);
            CACHE.put(key, codec);
        }
        return codec;
    }

    private static Codec create(JsonNode spec) throws ReflectiveOperationException {
        Class<?> type = find(spec.path("name").asText());
        if (spec.has("type")) {
            return (Codec) type.getConstructor(Class.class).newInstance(Values.classOf(spec.get("type").asText()));
        }
        if (spec.path("name").asText().equals("Composite")) {
            Codec inner = of(spec.get("inner"));
            return (Codec) type.getConstructor(Codec.class, Codec.class, Codec.class).newInstance(inner, inner, inner);
        }
        if (spec.has("inner")) {
            return (Codec) type.getConstructor(Codec.class).newInstance(of(spec.get("inner")));
        }
        if (spec.has("allowed") || spec.has("references")) {
            Constructor<?> constructor = type.getConstructor(Set.class, boolean.class);
            Set<String> allowed = null;
            if (spec.has("allowed")) {
                allowed = new LinkedHashSet<>();
                for (JsonNode name : spec.get("allowed")) allowed.add(name.asText());
            }
            return (Codec) constructor.newInstance(allowed, spec.path("references").asBoolean());
        }
        return (Codec) type.getConstructor().newInstance();
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        for (String prefix : PACKAGES) {
            try {
                return Class.forName(prefix + (name.contains("Codec") ? name : name + "Codec"));
            } catch (ClassNotFoundException next) {
                // the other package
            }
        }
        throw new ClassNotFoundException(name + "Codec");
    }
}
