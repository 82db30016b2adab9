/* The client of today: @src scheduler/transfer-task.ts TransferTask and @src scheduler/lease.ts Lease */

#define isTimerDue(i) (c[i].timer <= now)
#define isHoldDue(i) (c[i].hold <= now)
#define mayHold(i) (!c[i].first && c[i].subscribers > 1)
#define isBackingOff(i) (c[i].notBefore > now)

inline setLeader(i) { c[i].first = 1 }

inline clearClient(i) {
#ifndef PLANT_STOP_LEAVES_TIMER
  c[i].timer = INF;
#endif
  c[i].hold = INF; c[i].again = 0; c[i].announceNext = 0; c[i].first = 0; c[i].aim = 0; c[i].notBefore = 0;
  c[i].isTakenOver = 0;
  clearLease(i)
}

/* values that make no difference any more */
inline forget(i) {
  if
  :: c[i].notBefore <= now -> c[i].notBefore = 0
  :: else
  fi;
  if
  :: c[i].until + LEASE < now -> c[i].until = 0
  :: else
  fi;
  if
  :: c[i].hold == INF && c[i].net == NONE -> c[i].aim = 0
  :: else
  fi
}

/* A reply is lost, so what is known of it is too; the same request may be sent once more. */
inline clearNetReply(i) {
  c[i].moved = 0; c[i].next = 0; c[i].ranAt = 0; c[i].announcedAt = 0; c[i].replySubscribers = 0; c[i].netAge = 0; c[i].requestLate = 0
}

inline clearLease(i) {
  c[i].until = 0; c[i].heardCount = 0;
  c[i].heard[0] = 0; c[i].heard[1] = 0; c[i].heard[2] = 0; c[i].heard[3] = 0; c[i].heard[4] = 0; c[i].heard[5] = 0;
  c[i].unheard[0] = 0; c[i].unheard[1] = 0
}

inline dropHeard(i) {
  c[i].heardCount = 0;
  c[i].heard[0] = 0; c[i].heard[1] = 0; c[i].heard[2] = 0; c[i].heard[3] = 0; c[i].heard[4] = 0; c[i].heard[5] = 0
}

/* @src timing/remote-clock.ts toLocal, as the tick in which the timer fires */
#ifdef PLANT_PROCESS_CLOCK
#define toLocal(i, at) (at >= IDLE_UNTIL -> INF : at + 9)
#else
#define toLocal(i, at) (at >= IDLE_UNTIL -> INF : at + 1 - c[i].skew)
#endif

/* @src scheduler/transfer-task.ts #start, and the beginning of #run */
inline send(i) {
  c[i].again = 0;
  c[i].announce = c[i].announceNext;
  c[i].announceNext = 0;
  c[i].hold = INF;
  dropHeard(i); c[i].isTakenOver = 0; /* @src scheduler/lease.ts onSent */
  c[i].soon = (c[i].subscribers > 1);
  c[i].leaseUntil = c[i].until;
  c[i].net = SENT; c[i].netAge = 0
}

/* @src scheduler/transfer-task.ts #request */
inline request(i, asked) {
  if
  :: c[i].notBefore > now -> c[i].timer = least(c[i].timer, c[i].notBefore)
  :: else ->
    if
    :: c[i].net == NONE -> c[i].announceNext = asked; send(i)
#ifndef PLANT_AGAIN_LOST
    :: else -> c[i].announceNext = c[i].announceNext || asked; c[i].again = 1
#else
    :: else
#endif
    fi
  fi
}

/* @src scheduler/transfer-task.ts wake */
inline wake(i) { request(i, 0) }

/* @src scheduler/transfer-task.ts onSubscribed */
inline onSubscribed(i) {
  c[i].until = 0; c[i].unheard[0] = 0; c[i].unheard[1] = 0; /* @src scheduler/lease.ts onSubscribed */
#ifndef PLANT_NO_TRANSFER_AFTER_SUBSCRIBE
  c[i].notBefore = 0;
  request(i, 0)
#else
  c[i].notBefore = 0
#endif
}

/* @src scheduler/transfer-task.ts #onDue; `wait` is the random part */
inline onDue(i, wait) {
  if
  :: !mayHold(i) -> request(i, 1)
  :: else ->
#ifndef PLANT_ONLY_THE_FIRST
    c[i].hold = least(c[i].hold, now + FOLLOW + wait)
#else
    skip
#endif
  fi
}

inline onTimer(i, wait) {
  c[i].aim = c[i].timer + c[i].skew - 1;
  c[i].timer = INF;
  onDue(i, wait)
}

inline onHold(i) {
  c[i].hold = INF;
  request(i, 1)
}

/* @src scheduler/lease.ts isLeaseAfter */
#define isLeaseAfter(until, at) (at > until && at <= until + LEASE)
#define LATEST 0
#define TAKEN_OVER 1
#define NO_REASON_TO_WAIT 2

/* @src scheduler/transfer-task.ts onAnnounced and @src scheduler/lease.ts onAnnounced; y: the news, z: the deadline */
inline onAnnounced(i, at) {
  z = toLocal(i, at);
  if
  :: z > now -> c[i].hold = INF
  :: else
  fi;
  y = LATEST;
  if
#ifdef PLANT_REPLACES_FOR_THE_LEADER
  :: c[i].unheard[0] == at -> c[i].unheard[0] = c[i].unheard[1]; c[i].unheard[1] = 0; y = LATEST
#else
  :: c[i].unheard[0] == at -> c[i].unheard[0] = c[i].unheard[1]; c[i].unheard[1] = 0; y = NO_REASON_TO_WAIT
#endif
  :: c[i].unheard[0] != at && c[i].unheard[1] == at -> c[i].unheard[1] = 0; y = NO_REASON_TO_WAIT
  :: else ->
    if
    :: c[i].net != NONE ->
      assert(c[i].heardCount < 6);
      c[i].heard[c[i].heardCount] = at;
      c[i].heardCount++
    :: else
    fi;
    if
    :: c[i].unheard[0] != 0 -> y = NO_REASON_TO_WAIT
    :: c[i].unheard[0] == 0 && c[i].until != 0 ->
#ifdef PLANT_NEVER_YIELDS
      y = NO_REASON_TO_WAIT
#elif defined PLANT_REPLACES_FOR_THE_LEADER
      y = LATEST
#else
      c[i].isTakenOver = isLeaseAfter(c[i].until, at);
      y = (c[i].isTakenOver -> TAKEN_OVER : (at > c[i].until -> LATEST : NO_REASON_TO_WAIT));
      c[i].until = 0
#endif
    :: else
    fi
  fi;
  if
  :: y == TAKEN_OVER -> c[i].first = 0
  :: else
  fi;
#ifdef PLANT_LOWERS_FOR_A_FOLLOWER
  c[i].timer = least(c[i].timer, z)
#else
  if
  :: y == NO_REASON_TO_WAIT -> c[i].timer = least(c[i].timer, z)
  :: else -> c[i].timer = z
  fi
#endif
}

/* @src scheduler/lease.ts onReply; y: the news */
inline leaseOnReply(i) {
  for (j : 0 .. 1) {
    if
    :: c[i].unheard[j] != 0 && (c[i].unheard[j] < c[i].ranAt || c[i].unheard[j] > c[i].ranAt + LEASE) -> c[i].unheard[j] = 0
    :: else
    fi
  };
  if
  :: c[i].unheard[0] == 0 -> c[i].unheard[0] = c[i].unheard[1]; c[i].unheard[1] = 0
  :: else
  fi;
  if
  :: c[i].announcedAt == 0 -> y = (c[i].isTakenOver -> TAKEN_OVER : LATEST)
  :: else ->
    /* x: the place after its own announcement among those heard; 0 when it is not among them. flag: a later lease follows it */
    x = 0; flag = 0;
    for (j : 0 .. 5) {
      if
      :: j < c[i].heardCount && c[i].heard[j] == c[i].announcedAt -> x = j + 1; flag = 0
      :: j < c[i].heardCount && c[i].heard[j] != c[i].announcedAt && x > 0 && isLeaseAfter(c[i].announcedAt, c[i].heard[j]) -> flag = 1
      :: else
      fi
    };
    k = (c[i].next != INF && c[i].announcedAt > c[i].next); /* isLease */
    c[i].until = (k && (x == 0 || x == c[i].heardCount) -> c[i].announcedAt : 0);
    if
    :: k && x == 0 ->
      assert(c[i].unheard[1] == 0);
      if
      :: c[i].unheard[0] == 0 || c[i].unheard[0] == c[i].announcedAt -> c[i].unheard[0] = c[i].announcedAt
      :: else -> c[i].unheard[1] = c[i].announcedAt
      fi
    :: else
    fi;
    y = (x == 0 || x == c[i].heardCount -> LATEST : (k && flag -> TAKEN_OVER : NO_REASON_TO_WAIT))
  fi;
  dropHeard(i)
}

/* @src scheduler/transfer-task.ts #run, after the reply */
inline onReply(i, wait) {
  observe(i);
  c[i].subscribers = c[i].replySubscribers;
  leaseOnReply(i);
  x = c[i].next; z = c[i].ranAt; flag = c[i].moved; k = c[i].announce;
  clearNet(i);
  if
  :: y == TAKEN_OVER -> c[i].first = 0
  :: else ->
    if
    :: flag -> c[i].first = 1
#ifndef PLANT_NEVER_YIELDS
    :: !flag && k && x > c[i].aim -> c[i].first = 0
#endif
    :: else
    fi;
    if
    :: x == INF
    :: x != INF && x <= z -> c[i].again = 1
    :: x != INF && x > z ->
      y = toLocal(i, x);
      if
      :: y <= now -> c[i].aim = y + c[i].skew - 1; onDue(i, wait)
#if defined PLANT_REPLIES_REPLACE
      :: else -> c[i].timer = y
#elif defined PLANT_REPLIES_IGNORED
      :: else
#else
      :: else -> c[i].timer = least(c[i].timer, y)
#endif
      fi
    fi
  fi;
  if
  :: c[i].again && c[i].net == NONE -> send(i)
  :: !c[i].again && c[i].net == NONE && c[i].hold == INF -> c[i].aim = 0
  :: else
  fi
}

/* @src scheduler/transfer-task.ts #onFailure */
inline onFailed(i) {
  clearNet(i);
  c[i].again = 0; c[i].announceNext = 0; c[i].first = 0;
  c[i].until = 0; dropHeard(i); /* @src scheduler/lease.ts end */
#ifndef PLANT_NO_RETRY
  c[i].notBefore = now + BACKOFF_TIME;
  c[i].timer = least(c[i].timer, c[i].notBefore)
#endif
}
