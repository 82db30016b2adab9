/* The client of decision 0033: a state machine; Redis decides who leads. */

#define isTimerDue(i) ((c[i].state == WAITING || c[i].state == BACKING_OFF) && c[i].deadline <= now)
#define isHoldDue(i) (c[i].state == DEFERRING && c[i].deadline <= now)
#define mayHold(i) (!c[i].isLeader && c[i].subscribers > 1 && c[i].state == WAITING)
#define isBackingOff(i) (c[i].state == BACKING_OFF)

inline setLeader(i) { c[i].isLeader = 1 }

inline clearClient(i) {
#ifdef PLANT_STOP_LEAVES_TIMER
  if
  :: c[i].state == WAITING
  :: else -> c[i].state = IDLE; c[i].deadline = INF
  fi;
#else
  c[i].state = IDLE; c[i].deadline = INF;
#endif
  c[i].again = 0; c[i].isLeader = 0
}

inline forget(i) { skip }

inline clearNetReply(i) {
  c[i].moved = 0; c[i].next = 0; c[i].ranAt = 0; c[i].replySubscribers = 0; c[i].netAge = 0; c[i].requestLate = 0;
  c[i].replyLeader = 0; c[i].leaseUntil = 0
}

#ifdef PLANT_PROCESS_CLOCK
#define toLocal(i, at) (at >= IDLE_UNTIL -> INF : at + 9)
#else
#define toLocal(i, at) (at >= IDLE_UNTIL -> INF : at + 1 - c[i].skew)
#endif

inline run_(i, asked) {
  c[i].state = RUNNING; c[i].deadline = INF; c[i].again = 0;
  c[i].announce = asked;
  c[i].net = SENT; c[i].netAge = 0
}

inline arm(i, at) {
  c[i].deadline = at;
  c[i].state = (at == INF -> IDLE : WAITING)
}

inline onTimer(i, wait) {
  if
  :: c[i].state == BACKING_OFF -> run_(i, 0)
  :: c[i].state == WAITING && mayHold(i) ->
#ifndef PLANT_ONLY_THE_FIRST
    c[i].state = DEFERRING; c[i].deadline = now + FOLLOW + wait
#else
    arm(i, INF)
#endif
  :: c[i].state == WAITING && !mayHold(i) -> run_(i, 1)
  fi
}

inline onHold(i) { run_(i, 1) }

inline wake(i) {
  if
  :: c[i].state == RUNNING ->
#ifndef PLANT_AGAIN_LOST
    c[i].again = 1
#else
    skip
#endif
  :: c[i].state == BACKING_OFF
  :: c[i].state != RUNNING && c[i].state != BACKING_OFF -> run_(i, 0)
  fi
}

inline onSubscribed(i) {
#ifndef PLANT_NO_TRANSFER_AFTER_SUBSCRIBE
  if
  :: c[i].state == BACKING_OFF -> run_(i, 0)
  :: else -> wake(i)
  fi
#else
  skip
#endif
}

/* The rule in a sentence: an announcement replaces the deadline of a follower and lowers that of the leader. */
inline onAnnounced(i, at) {
  z = toLocal(i, at);
#ifdef PLANT_LOWERS_FOR_A_FOLLOWER
  flag = 1;
#elif defined PLANT_REPLACES_FOR_THE_LEADER
  flag = 0;
#else
  flag = c[i].isLeader;
#endif
  if
  :: c[i].state == IDLE || c[i].state == WAITING -> y = (flag -> least(c[i].deadline, z) : z); arm(i, y)
  :: c[i].state == DEFERRING && z > now -> arm(i, z)
  :: c[i].state == RUNNING -> c[i].deadline = (flag -> least(c[i].deadline, z) : z)
  :: else
  fi
}

inline onReply(i, wait) {
  observe(i);
  c[i].subscribers = c[i].replySubscribers;
  x = c[i].next;
  y = c[i].leaseUntil;
  if
  :: c[i].replyLeader == SELF || c[i].replyLeader == NOBODY && c[i].moved -> c[i].isLeader = 1
  :: c[i].replyLeader == OTHER ->
#ifndef PLANT_NEVER_YIELDS
    c[i].isLeader = 0;
#endif
    x = (x == INF -> INF : most(x, y))
  :: c[i].replyLeader == NOBODY && !c[i].moved
  fi;
  clearNet(i);
  z = toLocal(i, x);
#if defined PLANT_REPLIES_REPLACE
#elif defined PLANT_REPLIES_IGNORED
  z = c[i].deadline;
#else
  z = least(c[i].deadline, z);
#endif
  if
  :: c[i].again -> run_(i, 0)
  :: else -> arm(i, z)
  fi
}

inline onFailed(i) {
  clearNet(i);
  c[i].again = 0; c[i].isLeader = 0;
#ifndef PLANT_NO_RETRY
  c[i].state = BACKING_OFF; c[i].deadline = now + BACKOFF_TIME
#else
  c[i].state = IDLE; c[i].deadline = INF
#endif
}
