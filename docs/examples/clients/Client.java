import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Pushes a message with a delay, receives it when it is due, and acknowledges it. It needs Java 17 and nothing else; it finds the
 * few texts that it looks for in the JSON by patterns, for which a program would use its JSON library.
 */
public class Client {
    static final String URL = environment("REDELAYED_SERVICE", "http://127.0.0.1:8080");
    static final String TOPIC = "/v1/topics/" + environment("REDELAYED_TOPIC", "orders");
    static final HttpClient HTTP = HttpClient.newHttpClient();

    /** What the service refused; its code stays the same between versions. */
    static class Problem extends RuntimeException {
        final int status;
        final String code;

        Problem(int status, String body) {
            super(status + " " + body);
            this.status = status;
            this.code = text(body, "code");
        }
    }

    static String call(String key, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(URL + path))
            .header("Authorization", "Bearer " + key)
            .header("Content-Type", "application/json")
            .timeout(Duration.ofSeconds(30)) // longer than the wait of a receive
            .POST(BodyPublishers.ofString(body))
            .build();
        HttpResponse<String> response = HTTP.send(request, BodyHandlers.ofString());
        if (response.statusCode() >= 300) throw new Problem(response.statusCode(), response.body());
        return response.body();
    }

    public static void main(String[] args) throws Exception {
        String key = environment("REDELAYED_KEY", "");
        long started = System.nanoTime();
        String message = "{\"id\":\"close:7\",\"delay\":500,\"body\":{\"order\":7}}";
        String pushed = call(key, TOPIC + "/messages", message);
        check("added".equals(text(pushed, "outcome")), pushed);

        // under the same id a push can be repeated: what is there stays
        String again = call(key, TOPIC + "/messages", message);
        check("kept".equals(text(again, "outcome")), again);

        String received = call(key, TOPIC + "/receive", "{\"wait\":20000}");
        check(System.nanoTime() - started > 490_000_000L, "it came before it was due");
        check("close:7".equals(text(received, "id")) && received.contains("\"body\":{\"order\":7}"), received);
        check(received.contains("\"attempt\":1"), received);

        String leases = "{\"leases\":[\"" + text(received, "lease") + "\"]}";
        for (String expected : new String[] {"ok", "lost"}) {
            String answer = call(key, "/v1/leases/acknowledge", leases);
            check(answer.equals("{\"results\":[\"" + expected + "\"]}"), answer);
        }

        try {
            call("no key", TOPIC + "/messages", "{}");
            throw new IllegalStateException("a wrong key was taken");
        } catch (Problem problem) {
            check(problem.status == 401 && "unauthorized".equals(problem.code), problem.getMessage());
        }
        System.out.println("pushed, received after its delay, acknowledged");
    }

    static String environment(String name, String otherwise) {
        String value = System.getenv(name);
        return value == null || value.isEmpty() ? otherwise : value;
    }

    /** The first text of that name; of an id or a lease, which have no escapes. */
    static String text(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\"([^\"]*)\"").matcher(json);
        return found.find() ? found.group(1) : null;
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) throw new IllegalStateException(otherwise);
    }
}
