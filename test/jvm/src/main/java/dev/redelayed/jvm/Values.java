package dev.redelayed.jvm;

import com.example.shop.Color;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.Set;
import java.util.UUID;

/**
 * Java values as typed JSON, {"t": type, "v": value}, and back. The type is the class's name without its package, so that
 * the other side can distinguish an Integer from a Long and an ArrayList from a LinkedList. What would not survive JSON is text.
 */
final class Values {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final String SHOP = "com.example.shop.";

    private Values() {
    }

    static Object toJava(JsonNode node) throws ReflectiveOperationException, IOException {
        String type = node.path("t").asText();
        JsonNode v = node.path("v");
        switch (type) {
            case "null": return null;
            case "String": return v.asText();
            case "Boolean": return v.asBoolean();
            case "Byte": return (byte) v.asInt();
            case "Short": return (short) v.asInt();
            case "Integer": return v.asInt();
            case "Long": return Long.valueOf(v.asText());
            case "Float": return Float.valueOf(v.asText());
            case "Double": return Double.valueOf(v.asText());
            case "Character": return v.asText().charAt(0);
            case "BigInteger": return new BigInteger(v.asText());
            case "BigDecimal": return new BigDecimal(v.asText());
            case "Date": return new Date(v.asLong());
            case "UUID": return UUID.fromString(v.asText());
            case "byte[]": return v.binaryValue();
            case "Color": return Color.valueOf(v.asText());
            case "int[]": return listOf(v, JsonNode::asInt).stream().mapToInt(Integer::intValue).toArray();
            case "long[]": return listOf(v, item -> Long.parseLong(item.asText())).stream().mapToLong(Long::longValue).toArray();
            case "String[]": return listOf(v, JsonNode::asText).toArray(new String[0]);
            case "Object[]": return elements(v).toArray();
            case "Arrays$ArrayList": return Arrays.asList(elements(v).toArray());
            case "List.of": return List.copyOf(elements(v));
            default: break;
        }
        Class<?> known = classOf(type);
        if (Collection.class.isAssignableFrom(known)) {
            @SuppressWarnings("unchecked")
            Collection<Object> collection = (Collection<Object>) known.getDeclaredConstructor().newInstance();
            collection.addAll(elements(v));
            return collection;
        }
        if (Map.class.isAssignableFrom(known)) {
            @SuppressWarnings("unchecked")
            Map<Object, Object> map = (Map<Object, Object>) known.getDeclaredConstructor().newInstance();
            for (JsonNode entry : v) {
                map.put(toJava(entry.get(0)), toJava(entry.get(1)));
            }
            return map;
        }
        Object object = known.getDeclaredConstructor().newInstance();
        for (var fields = v.fields(); fields.hasNext();) {
            Map.Entry<String, JsonNode> field = fields.next();
            known.getField(field.getKey()).set(object, toJava(field.getValue()));
        }
        return object;
    }

    /** Maps and sets without an order of their own are sorted, so that equal ones look equal. */
    static JsonNode toJson(Object value) throws ReflectiveOperationException {
        ObjectNode node = JSON.createObjectNode();
        if (value == null) {
            return node.put("t", "null");
        }
        node.put("t", nameOf(value.getClass()));
        if (value instanceof Boolean flag) return node.put("v", flag);
        if (value instanceof Byte || value instanceof Short || value instanceof Integer) return node.put("v", ((Number) value).intValue());
        if (value instanceof Date date) return node.put("v", date.getTime());
        if (value instanceof byte[] bytes) return node.put("v", bytes);
        if (value instanceof Enum<?> constant) return node.put("v", constant.name());
        if (value instanceof BigDecimal decimal) return node.put("v", decimal.toPlainString());
        if (value instanceof Number || value instanceof CharSequence || value instanceof Character || value instanceof UUID) {
            return node.put("v", value.toString());
        }
        if (value.getClass().isArray()) {
            ArrayNode items = node.putArray("v");
            boolean typed = !value.getClass().getComponentType().isPrimitive();
            for (int i = 0; i < Array.getLength(value); i++) {
                if (typed) items.add(toJson(Array.get(value, i)));
                else items.add(Array.get(value, i).toString());
            }
            return node;
        }
        List<JsonNode> items = new ArrayList<>();
        if (value instanceof Collection<?> collection) {
            for (Object item : collection) items.add(toJson(item));
            boolean ordered = !(value instanceof Set) || value instanceof LinkedHashSet || value instanceof SortedSet;
            return withItems(node, items, ordered);
        }
        if (value instanceof Map<?, ?> map) {
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                items.add(JSON.createArrayNode().add(toJson(entry.getKey())).add(toJson(entry.getValue())));
            }
            return withItems(node, items, value instanceof LinkedHashMap || value instanceof SortedMap);
        }
        if (!value.getClass().getName().startsWith(SHOP)) {
            return node.put("v", value.toString());
        }
        ObjectNode fields = node.putObject("v");
        for (Field field : value.getClass().getFields()) {
            if (!Modifier.isStatic(field.getModifiers()) && field.get(value) != null) fields.set(field.getName(), toJson(field.get(value)));
        }
        return node;
    }

    private static JsonNode withItems(ObjectNode node, List<JsonNode> items, boolean ordered) {
        if (!ordered) items.sort(Comparator.comparing(JsonNode::toString));
        node.putArray("v").addAll(items);
        return node;
    }

    static Class<?> classOf(String type) throws ClassNotFoundException {
        for (String prefix : new String[] {SHOP, "java.util.", "java.util.concurrent.", "java.lang.", "java.math.", ""}) {
            try {
                return Class.forName(prefix + type);
            } catch (ClassNotFoundException next) {
                // another package
            }
        }
        throw new ClassNotFoundException(type);
    }

    private static String nameOf(Class<?> type) {
        return type.getTypeName().replaceFirst("^(java\\.(util|lang|math)\\.(concurrent\\.)?|com\\.example\\.shop\\.)", "");
    }

    private static List<Object> elements(JsonNode array) throws ReflectiveOperationException, IOException {
        List<Object> list = new ArrayList<>();
        for (JsonNode item : array) list.add(toJava(item));
        return list;
    }

    private static <T> List<T> listOf(JsonNode array, java.util.function.Function<JsonNode, T> read) {
        List<T> list = new ArrayList<>();
        for (JsonNode item : array) list.add(read.apply(item));
        return list;
    }
}
