import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.ConsumeApi;
import org.openapitools.client.api.MessagesApi;
import org.openapitools.client.model.AcknowledgeInput;
import org.openapitools.client.model.MessageInput;
import org.openapitools.client.model.Outcome;
import org.openapitools.client.model.ReceiveInput;
import org.openapitools.client.model.ReceivedMessage;

/** As Client.java, with the client that openapi-generator has generated (generator java, library native). */
public class Client {
    static final String TOPIC = System.getenv("REDELAYED_TOPIC");

    public static void main(String[] args) throws Exception {
        ApiClient client = connect(System.getenv("REDELAYED_KEY"));
        MessagesApi messages = new MessagesApi(client);
        ConsumeApi consume = new ConsumeApi(client);

        long started = System.nanoTime();
        MessageInput message = new MessageInput().id("close:7").delay(500L).body(Map.of("order", 7));
        check(messages.pushMessage(TOPIC, message, null).getOutcome() == Outcome.ADDED, "it was not added");
        check(messages.pushMessage(TOPIC, message, null).getOutcome() == Outcome.KEPT, "it was not kept");

        ReceivedMessage received =
            consume.receiveMessages(TOPIC, new ReceiveInput().wait(Long.valueOf(20_000))).getMessages().get(0);
        check(System.nanoTime() - started > 490_000_000L, "it came before it was due");
        check(received.getId().equals("close:7") && received.getAttempt() == 1, received.toString());
        check(received.getBody().equals(Map.of("order", 7)), received.toString());

        AcknowledgeInput leases = new AcknowledgeInput().leases(List.of(received.getLease()));
        for (String expected : new String[] {"ok", "lost"}) {
            String answer = consume.acknowledge(leases).getResults().get(0).getValue();
            check(answer.equals(expected), answer);
        }

        try {
            new MessagesApi(connect("no key")).pushMessage(TOPIC, new MessageInput(), null);
            throw new IllegalStateException("a wrong key was taken");
        } catch (ApiException problem) {
            boolean isKnown = problem.getResponseBody().contains("\"code\":\"unauthorized\"");
            check(problem.getCode() == 401 && isKnown, problem.getMessage());
        }
        System.out.println("pushed, received after its delay, acknowledged");
    }

    static ApiClient connect(String key) {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("REDELAYED_SERVICE"));
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + key));
        return client;
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) throw new IllegalStateException(otherwise);
    }
}
