import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RFuture;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;
import org.redisson.config.SslVerificationMode;

/** Redisson behind the line protocol of benchmarks/subjects/external.ts. */
@SuppressWarnings("deprecation") // what is measured is the deprecated queue
public class Bench {
  static final ObjectMapper JSON = new ObjectMapper();
  static final long HOUR = 3_600_000;
  static final int WARM_UP = 5_000;

  static final List<RedissonClient> clients = new ArrayList<>();
  static final List<RBlockingQueue<String>> queues = new ArrayList<>();
  static RDelayedQueue<String> delayed;
  static int payloadBytes;
  static final ExecutorService threads = Executors.newCachedThreadPool(task -> {
    Thread thread = new Thread(task);
    thread.setDaemon(true);
    return thread;
  });

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode request = JSON.readTree(line);
      // a take lasts until all have come, and others are answered meanwhile
      threads.execute(() -> {
        ObjectNode answer = JSON.createObjectNode().put("id", request.get("id").asInt());
        try {
          answer(request, answer);
        } catch (Throwable failed) {
          answer.put("error", failed.toString());
        }
        synchronized (System.out) {
          System.out.println(answer);
          System.out.flush();
        }
      });
    }
    Runtime.getRuntime().halt(0); // its connections end with it
  }

  static void answer(JsonNode request, ObjectNode answer) throws Exception {
    switch (request.get("do").asText()) {
      case "open" -> open(request);
      case "ready" -> ready();
      case "schedule" -> schedule(request.get("dues"), request.get("inFlight").asInt());
      case "load" -> load(request.get("count").asInt(), request.get("inFlight").asInt());
      case "produce" -> produce(request.get("dues"));
      case "add" -> answer.put("seconds", add(request.get("count").asInt(), request.get("inFlight").asInt()));
      case "take" -> take(request, answer);
      default -> throw new IllegalArgumentException("unknown request " + request.get("do"));
    }
  }

  static void open(JsonNode request) {
    payloadBytes = request.get("payloadBytes").asInt();
    String name = request.get("queue").asText();
    int count = request.has("clients") ? request.get("clients").asInt() : 1;
    // clients of one process share threads, as Redisson's documentation advises: each would start 48 of its own
    EventLoopGroup loops = count > 1 ? new NioEventLoopGroup(32) : null;
    for (int i = 0; i < count; i++) {
      Config config = new Config();
      // each consumer that waits holds a connection; by default there are 64, of which 24 are opened at once
      SingleServerConfig server = config.useSingleServer().setAddress(request.get("url").asText());
      if (count > 1) {
        config.setEventLoopGroup(loops).setExecutor(threads);
        server.setConnectionMinimumIdleSize(2).setConnectionPoolSize(64);
      } else {
        server.setConnectionPoolSize(256);
      }
      // the certificate is made for the run: connecting is not measured, and what is sent is encrypted all the same
      if (request.has("ca")) config.setSslVerificationMode(SslVerificationMode.NONE);
      RedissonClient client = Redisson.create(config);
      clients.add(client);
      RBlockingQueue<String> queue = client.getBlockingQueue(name);
      queues.add(queue);
      RDelayedQueue<String> own = client.getDelayedQueue(queue); // each client transfers
      if (i == 0) delayed = own;
    }
  }

  /** Warm, as the other subjects are, which share one process. */
  static void ready() throws Exception {
    RBlockingQueue<String> other = clients.get(0).getBlockingQueue("warm-up");
    RDelayedQueue<String> otherDelayed = clients.get(0).getDelayedQueue(other);
    inFlight(WARM_UP, 64, i -> otherDelayed.offerAsync(payload(i), 0, TimeUnit.MILLISECONDS));
    for (int i = 0; i < WARM_UP; i++) other.take();
    inFlight(WARM_UP, 64, i -> other.offerAsync(payload(i)));
    for (int left = WARM_UP; left > 0;) {
      for (List<String> values : other.pollFirstFromAny(Duration.ofSeconds(1), 100).values()) left -= values.size();
    }
    otherDelayed.destroy();
    for (RBlockingQueue<String> queue : queues) queue.poll();
  }

  static void schedule(JsonNode dues, int width) throws Exception {
    inFlight(dues.size(), width, i ->
        delayed.offerAsync(payload(i), Math.max(0, dues.get(i).asLong() - System.currentTimeMillis()), TimeUnit.MILLISECONDS));
  }

  static void load(int count, int width) throws Exception {
    inFlight(count, width, i -> queues.get(0).offerAsync(payload(i)));
  }

  /** Each at its moment, whatever has become of those before it. */
  static void produce(JsonNode at) throws Exception {
    List<RFuture<Boolean>> offers = new ArrayList<>();
    for (int i = 0; i < at.size(); i++) {
      for (long wait; (wait = at.get(i).asLong() * 1_000 - micros()) > 0;) LockSupport.parkNanos(wait * 1_000);
      offers.add(queues.get(0).offerAsync(payload(i)));
    }
    for (RFuture<Boolean> offer : offers) offer.toCompletableFuture().get();
  }

  static double add(int count, int width) throws Exception {
    long started = System.nanoTime();
    inFlight(count, width, i -> delayed.offerAsync(payload(i), HOUR, TimeUnit.MILLISECONDS));
    return (System.nanoTime() - started) / 1e9;
  }

  static long micros() {
    return ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
  }

  static void inFlight(int count, int width, IntFunction<RFuture<?>> action) throws Exception {
    Semaphore free = new Semaphore(width);
    Throwable[] failed = new Throwable[1];
    for (int i = 0; i < count; i++) {
      free.acquire();
      action.apply(i).whenComplete((result, error) -> {
        if (error != null) failed[0] = error;
        free.release();
      });
    }
    free.acquire(width);
    if (failed[0] != null) throw new Exception(failed[0]);
  }

  static void take(JsonNode request, ObjectNode answer) throws Exception {
    int count = request.get("count").asInt();
    int consumers = request.get("consumers").asInt();
    int batch = request.get("batch").asInt();
    int[] indexes = new int[count];
    long[] at = new long[count];
    AtomicInteger taken = new AtomicInteger();
    Semaphore done = new Semaphore(0);
    for (int c = 0; c < consumers; c++) {
      RBlockingQueue<String> queue = queues.get(c % queues.size());
      threads.execute(() -> {
        try {
          while (taken.get() < count) {
            if (batch == 1) {
              if (note(queue.take(), indexes, at, taken)) done.release();
              continue;
            }
            // one call waits for the first and gives as many as there are
            Map<String, List<String>> found = queue.pollFirstFromAny(Duration.ofSeconds(10), batch);
            if (found == null) continue;
            for (List<String> values : found.values()) {
              for (String value : values) if (note(value, indexes, at, taken)) done.release();
            }
          }
        } catch (Exception failed) {
          failed.printStackTrace();
        }
      });
    }
    done.acquire();
    answer.set("indexes", JSON.valueToTree(indexes));
    answer.set("at", JSON.valueToTree(at));
  }

  static boolean note(String value, int[] indexes, long[] at, AtomicInteger taken) {
    long now = micros();
    int place = taken.getAndIncrement();
    if (place >= indexes.length) return false;
    indexes[place] = Integer.parseInt(value.substring(0, value.indexOf(':')));
    at[place] = now;
    return place == indexes.length - 1;
  }

  static String payload(int index) {
    StringBuilder text = new StringBuilder(Math.max(payloadBytes, 12)).append(index).append(':');
    while (text.length() < payloadBytes) text.append('x');
    return text.toString();
  }
}
