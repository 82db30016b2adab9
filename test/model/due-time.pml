/*
 * The due-time protocol: three clients deliver one delayed queue. SPIN plays every order of events up to the tick END, with every
 * way to spend the faults, and checks the assertions below. scripts/test-model.ts compiles and runs it; docs/testing.md says how.
 *
 * -DPLANT_...         one planted fault, which SPIN has to find
 * -DSTARTS            the clients have still to subscribe; -DTWO_LEADERS: two of them believe that they lead
 * -DMOST_SCRIPTS=n    the scripts of a whole run are counted, and a run goes on after the last entry is listed
 * the other -D's      the size of the world: see "Size" below
 *
 * A comment with @src: says which file of src and which name in it a part stands for; the runner checks that src has them.
 *
 * Time is counted in ticks. All clocks run alike but for `skew` (RemoteClock, one tick early or late). In one tick all orders of
 * events are played; a request, a reply and an announcement take at most LATENCY ticks each unless a fault holds them up.
 */

/* ---- Size; which worlds are searched is said in scripts/model-checks.ts */
#ifndef ENTRIES
#define ENTRIES 2 /* or 3 */
#endif
#ifndef FAULTS
#define FAULTS 1 /* how many may happen */
#endif
#ifndef LATENCY
#define LATENCY 0
#endif
#ifndef LAST_OFFER
#define LAST_OFFER 3 /* the last tick of an offer */
#endif
#ifndef LONGEST_DELAY
#define LONGEST_DELAY 2
#endif
#ifndef END
#define END 15
#endif
#ifndef UP
#define UP 3 /* how many clients there are at first */
#endif
#define BOX 7 /* announcements on their way to one client */
#define CLIENTS 3
#define START 2

/* ---- The code's constants, in ticks. Their order of size is the code's: FOLLOW < LEASE < BACKOFF < SWEEP */
#define FOLLOW 1       /* @src scheduler/due-machine.ts FOLLOW_MS */
#define SPREAD 1       /* @src scheduler/due-machine.ts MAX_SPREAD_MS */
#define LEASE 4        /* @src store/lease.ts LEASE_MS */
#define SOON 4         /* @src store/lease.ts SUBSCRIBERS_PER_LEASE_MS: a hundred clients */
#define BACKOFF_TIME 5 /* @src timing/backoff.ts AFTER_FAILURE */
#define SWEEP 8        /* @src options.ts sweepInterval, the longest with its jitter; @src scheduler/sweeper.ts Sweeper */
#define TIMEOUT 2    /* a command without an answer fails after at most so long */
#define HELD_UP 3    /* a fault delays what it holds up by at most so long */

/* ---- Bounds that are asserted */
#ifndef STUCK
#define STUCK (SWEEP + 3 * LATENCY) /* the sweep runs one script, and one more for the rest of a batch */
#endif
#ifndef LATE
#define LATE (LEASE + FOLLOW + SPREAD + 2 * LATENCY + 1) /* 1: the clocks */
#endif
/* scripts of one client in one tick that move nothing */
#define MOST_RUNS 3

#define INF 255 /* no time */
#define IDLE_UNTIL 250 /* @src store/lease.ts IDLE_MS: announced when nothing is pending */
#define SUBSCRIBED 251 /* not a time: the acknowledgement of a subscription, in the same stream as the announcements */

#define least(a, b) (a < b -> a : b)
#define most(a, b) (a > b -> a : b)

/* ---- State */
byte now = START; /* the Redis clock */

/* An entry: not offered, pending, listed */
#define NEW 0
#define PENDING 1
#define LISTED 2
byte entry[ENTRIES];
byte due[ENTRIES];
bool listed[ENTRIES]; /* at some time: an entry may be so once */
byte late[ENTRIES];  /* ticks past its due time since the last fault, not counted while the network is not whole */
byte stuck[ENTRIES]; /* the same, not counted only while no client is healthy */

/* Where a script is on its way */
#define NONE 0
#define SENT 1
#define REPLIED 2
#define LOST 3 /* it, or its reply; the client does not know yet */

/* @src scheduler/due-machine.ts StateName */
#define IDLE 0
#define WAITING 1
#define DEFERRING 2
#define RUNNING 3
#define BACKING_OFF 4

typedef Client {
  bool up = true;
  bool linked = true; /* Redis has its subscription */
  byte netAge;        /* ticks since the request or the reply left */
  bool boxAge;        /* the first announcement waits since before this tick */
  byte runs;          /* scripts in this tick that moved nothing */
  byte sweepAt = START + SWEEP;
  byte skew = 1;      /* 0: fires a tick late; 1: exact; 2: a tick early */
  byte subscribers;
  /* the script under way: what it was given, and its reply */
  byte net;
  bool announce;
  bool renewing;
  bool requestLate;
  bool moved;
  byte next;
  byte ranAt;
  byte replySubscribers;
  byte state;
  byte deadline = INF;
  bool again;
  bool isLeader;
  bool renew;
  byte replyLeader; /* NO_LEADER, SELF, OTHER */
  byte leaseUntil;
}
Client c[CLIENTS];
chan box[CLIENTS] = [BOX] of { byte };

byte faults = FAULTS;
byte heldUp = NONE;  /* what a fault holds up: NONE, or one of the following */
#define HELD_REPLY 1
#define HELD_BOX 2
#define SUSPENDED 3
byte heldOf;         /* the client concerned */
byte heldUntil;

/* values that do not outlive a step */
hidden byte x, y, z, announced, k, j, flag, oldHead;

#include "redis.pml"
#include "due-machine.pml"

/* ---- The network */

#define isHeld(i, what) (heldUp != NONE && heldOf == i && (heldUp == what || heldUp == SUSPENDED))
#define isSuspended(i) (heldUp == SUSPENDED && heldOf == i)

inline emptyBox(i) {
  do
  :: nempty(box[i]) -> box[i]?_
  :: empty(box[i]) -> break
  od;
  c[i].boxAge = 0
}

inline clearNet(i) {
  c[i].net = NONE; c[i].announce = 0; c[i].renewing = 0; c[i].requestLate = 0; c[i].moved = 0; c[i].next = 0; c[i].ranAt = 0; c[i].netAge = 0;
  c[i].replySubscribers = 0;
  c[i].replyLeader = 0; c[i].leaseUntil = 0
}

/* @src timing/remote-clock.ts observe: the estimate of the fastest request is kept while no reply contradicts it */
inline observe(i) {
  y = c[i].requestLate;                  /* the request took so long, */
  z = now - c[i].ranAt;                  /* the reply so long */
#ifndef PLANT_PROCESS_CLOCK
  if
  :: c[i].skew > 1 + y || c[i].skew + z < 1 -> c[i].skew = 1 + y
  :: else
  fi
#endif
}

inline receive(i) {
  box[i]?x;
  if
  :: empty(box[i]) -> c[i].boxAge = 0
  :: nempty(box[i])
  fi;
  if
  :: x == SUBSCRIBED -> onSubscribed(i)
  :: else ->
#ifndef PLANT_DEAF
    onAnnounced(i, x)
#endif
  fi
}

/* A run ends with the last entry listed; where scripts are counted, at the tick END. */
#ifdef MOST_SCRIPTS
#define goesOn (now < END)
#else
#define goesOn (now < END && !(allListed))
#endif

proctype Runs(byte i) {
end:
  do
  :: d_step { goesOn && c[i].up && !isHeld(i, HELD_BOX) && nempty(box[i]) -> receive(i); skip }
  :: d_step { goesOn && c[i].net == SENT && !isSuspended(i) -> transfer(i, 0); skip }
  :: d_step { goesOn && c[i].net == SENT && !isSuspended(i) && dueCount > 1 -> transfer(i, 1); skip }
  :: d_step { goesOn && c[i].up && c[i].net == REPLIED && !isHeld(i, HELD_REPLY) -> onReply(i, 0); skip }
  :: d_step { goesOn && c[i].up && c[i].net == REPLIED && !isHeld(i, HELD_REPLY) && mayDefer(i) -> onReply(i, 1); skip }
  :: d_step { goesOn && c[i].up && c[i].net == LOST && !isSuspended(i) -> onFailed(i); skip }
  /* @src store/sender.ts Resend: the same request once more */
  :: d_step { goesOn && c[i].up && c[i].net == LOST && !isSuspended(i) -> c[i].net = SENT; c[i].netAge = 0; c[i].requestLate = 0; skip }
  :: d_step { goesOn && isTimerDue(i) && !isSuspended(i) -> assert(c[i].up); onDeadline(i, 0); skip }
  :: d_step { goesOn && isTimerDue(i) && mayDefer(i) && !isSuspended(i) -> onDeadline(i, 1); skip }
  :: d_step { goesOn && c[i].up && c[i].sweepAt <= now && !isSuspended(i) ->
      c[i].sweepAt = now + SWEEP;
#ifndef PLANT_NO_SWEEP
      wake(i);
#endif
      skip
    }
  od
}

/* ---- The environment: offers, faults, time */

inline nothingIsLate() {
  for (k : 0 .. ENTRIES - 1) { late[k] = 0 };
  skip
}

inline fault() {
  faults--;
  nothingIsLate()
}

/* The clients are alike, so the first fault of a run may be that of client 0. */
#define mayFail(i) (goesOn && faults > 0 && c[i].up && (faults < FAULTS || i == 0))

/* What happens in this tick at the latest has happened. */
#define isQuiet(i) ( \
  (!c[i].up || isSuspended(i) || (!isTimerDue(i) && c[i].sweepAt > now)) && \
  (c[i].net != SENT || isSuspended(i) || c[i].netAge < LATENCY) && \
  (c[i].net != REPLIED || isHeld(i, HELD_REPLY) || c[i].netAge < LATENCY) && \
  (c[i].net != LOST || c[i].netAge < TIMEOUT || isSuspended(i)) && \
  (empty(box[i]) || isHeld(i, HELD_BOX) || c[i].boxAge < LATENCY))

#define isHealthy(i) (c[i].up && c[i].net != LOST && !isBackingOff(i) && !isSuspended(i) && !isHeld(i, HELD_REPLY))
#define isWhole (heldUp == NONE && (!c[0].up || c[0].linked) && (!c[1].up || c[1].linked) && (!c[2].up || c[2].linked) && \
  c[0].net != LOST && c[1].net != LOST && c[2].net != LOST && !isBackingOff(0) && !isBackingOff(1) && !isBackingOff(2))

inline tick() {
  for (k : 0 .. ENTRIES - 1) {
    if
    :: entry[k] == PENDING && due[k] <= now ->
      if
      :: isWhole -> late[k]++; assert(late[k] <= LATE) /* after the last fault one client is there in time */
      :: else -> late[k] = 0
      fi;
      if
      :: isHealthy(0) || isHealthy(1) || isHealthy(2) -> stuck[k]++; assert(stuck[k] <= STUCK) /* whatever was lost */
      :: else -> stuck[k] = 0
      fi
    :: else
    fi
  };
  now++;
  for (k : 0 .. CLIENTS - 1) {
    c[k].runs = 0;
    if
    :: c[k].net != NONE && !isSuspended(k) -> c[k].netAge = least(c[k].netAge + 1, 9)
    :: else
    fi;
    if
    :: len(box[k]) > 0 && LATENCY > 0 -> c[k].boxAge = 1
    :: else
    fi
  };
  forgetAtRedis();
  if
  :: heldUp != NONE && heldUntil <= now -> heldUp = NONE; heldOf = 0; heldUntil = 0
  :: else
  fi
}

inline goes(i) {
  c[i].up = 0; c[i].linked = 0; c[i].sweepAt = 0; c[i].runs = 0; c[i].skew = 1; c[i].subscribers = 0;
  emptyBox(i);
  clearClient(i);
  if
  :: c[i].net == REPLIED || c[i].net == LOST -> clearNet(i)
  :: else /* a request that left still runs */
  fi;
  if
  :: heldOf == i -> heldUp = NONE; heldOf = 0; heldUntil = 0
  :: else
  fi;
  fault()
}

inline comes(i) {
  c[i].up = 1; c[i].linked = 1; c[i].sweepAt = now + SWEEP; c[i].skew = 1; c[i].subscribers = 1;
  box[i]!SUBSCRIBED
}

#define holdUp(i, what) heldUp = what; heldOf = i; heldUntil = now + HELD_UP; fault()

proctype Faults(byte i) {
end:
  do
  /* crash, or @src scheduler/due-scheduler.ts stop: the request under way runs, or not */
  :: d_step { mayFail(i) && c[0].up + c[1].up + c[2].up > 1 -> goes(i); skip }
  :: d_step { mayFail(i) && c[0].up + c[1].up + c[2].up > 1 && c[i].net == SENT -> clearNet(i); goes(i); skip }
  /* the connection of the subscriber breaks; what is on its way is lost */
  :: d_step { mayFail(i) && c[i].linked -> c[i].linked = 0; emptyBox(i); fault(); skip }
  /* another client starts */
  :: d_step { UP < CLIENTS && goesOn && faults > 0 && i == UP && !c[i].up && c[i].net == NONE -> comes(i); fault(); skip }
  /* the client subscribes again, now or much later: @src redis/subscriber.ts Subscriber */
  :: d_step { goesOn && c[i].up && !c[i].linked -> c[i].linked = 1; box[i]!SUBSCRIBED; skip }
  /* a request or its reply is lost */
  :: d_step { mayFail(i) && (c[i].net == SENT || c[i].net == REPLIED) -> loseNet(i); fault(); skip }
  :: d_step { mayFail(i) && heldUp == NONE && c[i].net == REPLIED -> holdUp(i, HELD_REPLY); skip }
  :: d_step { mayFail(i) && heldUp == NONE && nempty(box[i]) -> holdUp(i, HELD_BOX); skip }
  :: d_step { mayFail(i) && heldUp == NONE -> holdUp(i, SUSPENDED); skip }
  /* the two clocks drift apart */
  :: d_step { mayFail(i) && faults == FAULTS && c[i].skew == 1 -> c[i].skew = 0; fault(); skip }
  :: d_step { mayFail(i) && faults == FAULTS && c[i].skew == 1 -> c[i].skew = 2; fault(); skip }
  od
}

proctype World() {
  do
  :: d_step { goesOn && now <= LAST_OFFER && entry[ENTRIES - 1] == NEW -> offer(0); skip }
  :: d_step { goesOn && now <= LAST_OFFER && entry[ENTRIES - 1] == NEW -> offer(1); skip }
  :: d_step { goesOn && now <= LAST_OFFER && entry[ENTRIES - 1] == NEW && LONGEST_DELAY >= 2 -> offer(2); skip }
  :: d_step { goesOn && now <= LAST_OFFER && entry[ENTRIES - 1] == NEW && LONGEST_DELAY >= 9 -> offer(9); skip }
#ifdef PLANT_REPEATED_OFFER
  /* @src store/scripts/offer.lua undeliveredUntil is missing: the repetition of an offer whose reply was lost */
  :: d_step { goesOn && entry[0] == LISTED -> entry[0] = PENDING; due[0] = now; publish(now); countAgain(); skip }
#endif
  :: d_step { goesOn && isQuiet(0) && isQuiet(1) && isQuiet(2) -> tick(); skip }
  :: !(goesOn) -> break /* elsewhere time must be able to pass */
  od
}

init {
  atomic {
    run Runs(0); run Runs(1); run Runs(2);
    run Faults(0); run Faults(1); run Faults(2);
    run World();
    for (k : UP .. CLIENTS - 1) { c[k].up = 0; c[k].linked = 0; c[k].sweepAt = 0; c[k].subscribers = 0 };
    for (k : 0 .. UP - 1) { c[k].subscribers = UP };
#ifdef STARTS
    for (k : 0 .. UP - 1) { c[k].subscribers = 1; c[k].linked = 0 }; /* it has still to subscribe */
#endif
    /* none has delivered before, or one has: that of the first fault, or another */
    if
#ifdef TWO_LEADERS
    :: c[0].isLeader = 1; c[1].isLeader = 1 /* as after a leader that was suspended while another took over */
#else
    :: skip
    :: c[0].isLeader = 1
    :: UP > 1 -> c[1].isLeader = 1
#endif
    fi
  }
}
