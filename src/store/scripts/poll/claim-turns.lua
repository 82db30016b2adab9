-- A part of reliable-poll.lua: `takeTurns` claims messages if some have a group. `arePlain`: there are also messages without one.

-- Round robin: each group has a turn, and the messages without a group share one, under the empty name. The script works round by round: it
-- reads what the next groups have, their limits and their messages; then claims messages in the order of the turns; then writes all
-- changes.
local PLAIN, SEATS, SLOTS, LATE, TOGETHER = '', 100, 128, 16, 100
local arePlain, takeTurns = false, nil
if isGrouped then -- most queues have no groups, and making these functions takes time
local of = groupFunctions()
local headsOf, isPausedGroup, isGroupFull, statesOf, readState = of.headsOf, of.isPausedGroup, of.isGroupFull, of.statesOf, of.readState
local textOf, noteState, nextTurn, newPlaces, place, writePlaces = of.textOf, of.noteState, of.nextTurn, of.newPlaces, of.place, of.writePlaces
local areHeadsSmall, leastSlots = false, 0

-- The first messages of each of these groups, as many as its limits allow now and one more. Removes members without a message.
local function seat(names, deep)
  local named, seats, ids, heads, forged, size = {}, {}, {}, {}, {}, 0
  for _, group in ipairs(names) do
    if group ~= PLAIN and #group <= LONGEST_GROUP then push(named, group) end
  end
  local texts, at = statesOf(groups, named), 0
  for _, group in ipairs(names) do
    looked = looked + 1
    if group == PLAIN then
      push(seats, {isPlain = true, heads = {}, most = 0})
    elseif #group > LONGEST_GROUP then -- of another program
      redis.call('ZREM', groups.turns, group)
      size = size + #group
    else
      at = at + 1
      local state, most = readState(groups, texts[at]), math.huge
      if groups.concurrency then most = isGroupFull(groups, state) and 0 or math.max(1, groups.concurrency - state.claims) end
      if groups.rate then most = math.min(most, groups.rate.max - state.window.sum) end
      local isPaused = isPausedGroup(groups, group)
      if isPaused then most = 0 end
      local read = math.max(0, math.min(deep, most)) + 1
      local ahead, isCut = headsOf(groups, group, read, areHeadsSmall or #seats >= largeNames.few and size <= SMALL)
      local one = {group = group, state = state, most = most, heads = ahead, next = 1, begun = 0, isPaused = isPaused, isMore = isCut or #ahead == read}
      push(seats, one)
      for _, head in ipairs(one.heads) do
        size = size + #head.member
        if head.at then
          push(ids, head.id)
          push(heads, head)
        else
          push(forged, head.member)
        end
      end
      if size > BYTES then break end
    end
  end
  areHeadsSmall = areHeadsSmall or size <= SMALL
  local scores = #ids > 0 and redis.call('ZMSCORE', groups.schedule, unpack(ids)) or {}
  for n, head in ipairs(heads) do
    if not scores[n] or tonumber(scores[n]) ~= head.at then -- the message is there at another time
      push(forged, head.member)
      head.at = nil
    end
  end
  if #forged > 0 then
    redis.call('ZREM', groups.order, unpack(forged))
    for _, one in ipairs(seats) do
      local whole = {}
      for _, head in ipairs(one.heads) do
        if head.at then push(whole, head) end
      end
      one.isMore = one.isMore or #whole < #one.heads
      one.heads = whole
    end
  end
  return seats, size > BYTES
end

-- Reads the messages of the next turns, as far as they fit.
local function readSlots(seats, deep, slots, visible)
  local ids, read = {}, {}
  for pass = 1, deep do
    for _, one in ipairs(seats) do
      local head = pass <= one.most and one.heads[pass]
      if one.isPlain and pass <= visible then slots = slots - 1 end
      if head and head.at <= now and #ids < slots then
        push(ids, head.id)
        push(read, head)
      end
    end
  end
  if #ids == 0 then return end
  local records, delivered, fits = fitting(ids)
  for n = 1, fits do
    read[n].isRead, read[n].record, read[n].delivered = true, records[n], delivered[n]
  end
  if fits < #ids then isFull = true end -- by the limit of bytes
end

-- Claims messages in the order of the turns. Returns the changes to write.
local function claimTurns(seats, deep, visible)
  local done = {claimed = {}, written = {}, members = {}, ids = {}, strangers = {}, misplaced = {}, settled = {}, kept = {}, aside = {}, given = {}, plain = 0}
  local function claim(one, head)
    looked = looked + 1
    push(done.members, head.member)
    push(done.ids, head.id)
    if not head.record then
      push(done.strangers, head.id)
      return false
    end
    local attempts = head.delivered and attemptsOf(head.delivered) or 0
    local expires, limit, _, _, group = readMeta(head.record)
    -- The end of a claim counts for the group in the record: for another one the claim would never end.
    local isMisplaced = group ~= one.group
    if not isMisplaced then done.settled[head.id] = true end
    local hasHome = not isMisplaced or group or isSchedule(0)
    local outcome = not hasHome and 'kept' or not isMisplaced and endOf(head.id, attempts, expires, limit)
    local score = asideOf and not isMisplaced and not outcome and asideOf(head.record, GROUPED, head.at)
    if outcome == 'kept' then
      push(done.kept, {group = one.group, id = head.id})
      one.keptAt = now + LATER_MS
    elseif isMisplaced then push(done.misplaced, {group = group, id = head.id, at = head.at})
    elseif score then push(done.aside, {place = placeOf(one.group, aside.from, head.id), id = head.id, score = score})
    elseif not outcome then
      local delivery = isSuspect(head.delivered) and attempts + 1 .. ' ~' .. token or newDelivery(attempts + 1)
      push(done.claimed, ending, memberOf(GROUPED, head.id))
      push(done.written, head.id, delivery)
      push(done.given, {one = one, head = head, attempts = attempts + 1, delivery = delivery})
      one.begun = one.begun + 1
      return true
    end
    return false
  end
  for pass = 1, deep do
    for _, one in ipairs(seats) do
      if handed + #done.given >= want then return done end
      if one.isPlain then
        if done.plain < visible then
          done.plain = done.plain + 1
          push(done.given, {one = one})
        else
          done.isPlainOver = true -- a turn without a message is the last one
        end
      else
        local hasClaimed = false
        while not hasClaimed and one.begun < one.most do
          local head = one.heads[one.next]
          if not head or head.at > now then break end
          if not head.isRead then return done end -- it is the first message of the next round
          one.next = one.next + 1
          hasClaimed = claim(one, head)
        end
        if not hasClaimed and one.begun < one.most and not one.heads[one.next] and one.isMore then return done end
      end
    end
  end
  return done
end

-- Claims messages without a group for this many turns, or fewer. Appends the arguments to hand them out to `got`.
local function claimPlainTurns(got, turns)
  if turns <= 0 then return end
  local claimed = claimPlain(turns, function(...) got[#got + 1] = {...} end)
  if claimed >= turns then isFull = false end -- only these turns are served; otherwise another limit ends the poll, such as that of bytes
end

-- Moves a message to where its record says, which is in a group or among those without one. Returns whether it is new there, and whether it
-- has left the schedule.
local function bringHome(group, at, id)
  if group then return addToGroup(groups, group, at, id), false end
  if not isSchedule(0) then return false, false end
  redis.call('ZADD', due[1], string.format('%.0f', at), id)
  redis.call('ZREM', groups.schedule, id)
  arePlain = true
  return true, true
end

local function writeTurns(seats, done)
  if #done.claimed > 0 then
    redis.call('ZADD', inFlight, unpack(done.claimed))
    if #done.written >= 2 * MANY then redis.call('HSET', deliveries, done.written[1], LONG, unpack(done.written))
    else redis.call('HSET', deliveries, unpack(done.written)) end
  end
  if #done.strangers > 0 then forget(done.strangers) end
  -- the new places first, so that after an error each message has one
  local stays = {}
  for _, each in ipairs(done.aside) do
    redis.call('ZADD', groups.order, 0, each.place)
    redis.call('ZADD', groups.schedule, each.score, each.id)
    stays[each.id] = true
  end
  for _, each in ipairs(done.kept) do
    addToGroup(groups, each.group, now + LATER_MS, each.id)
    stays[each.id] = true
  end
  for _, each in ipairs(done.misplaced) do -- one that has a place in its own group, too, can have been claimed there, or have ended
    if not done.settled[each.id] then
      bringHome(each.group, each.at, each.id)
      stays[each.id] = true
    end
  end
  if #done.ids > 0 then
    local leaving = {}
    for _, id in ipairs(done.ids) do
      if not stays[id] then push(leaving, id) end
    end
    redis.call('ZREM', groups.order, unpack(done.members))
    if #leaving > 0 then redis.call('ZREM', groups.schedule, unpack(leaving)) end
  end
  local places = newPlaces()
  for _, one in ipairs(seats) do
    if not one.isPlain then
      local head = one.heads[one.next]
      one.state.claims = one.state.claims + one.begun
      if groups.rate and one.begun > 0 then addClaims(groups.rate, one.state.window, one.begun, now + 1) end -- rounded up, so that no period is shorter
      if one.isPaused then
        push(places.noTurns, one.group)
        noteState(places, one.group, one.state.text, textOf(one.state))
        one.hasLeft = true
      else
        local at = head and head.at or one.isMore and now -- unread messages are examined in their turn
        if one.keptAt then at = math.min(at or one.keptAt, one.keptAt) end
        one.hasLeft = not place(groups, places, one.group, one.state, at)
      end
    end
  end
  places.noWakes = {} -- a group with a turn has no time
  return places
end

local function takeRound()
  local most = math.min(want - handed, SEATS)
  local names, areCut = namesOf(most, function(many, from) return redis.call('ZRANGE', groups.turns, from, from + many - 1) end)
  if #names == 0 then return false end
  local slots = math.max(want - handed, leastSlots)
  local deep = (#names < most and not areCut or most == 1) and math.ceil(math.min(slots, SLOTS) / #names) or 1
  if not areHeadsSmall then deep = math.min(deep, 2 * largeNames.few) end
  local seats, isCut = seat(names, deep)
  if isCut then deep = 1 end
  local visible = 0
  for _, one in ipairs(seats) do
    for at = 1, one.isPlain and #due or 0 do
      local here = redis.pcall('ZCOUNT', due[at], '-inf', now)
      visible = visible + (type(here) == 'number' and here or 0)
    end
  end
  -- The first turn is served before any bytes are used up, even if the messages of the next groups fill each poll: it then ends, and the
  -- next poll begins with another turn.
  local plain = {}
  if bytes == 0 and visible > 0 and seats[1].isPlain then
    claimPlainTurns(plain, 1)
    if #plain == 0 and not isFull then visible = 0 end -- none of them was a message to hand out
  end
  readSlots(seats, deep, slots, visible)
  local done = claimTurns(seats, deep, visible)
  local places = writeTurns(seats, done)
  local before = handed
  claimPlainTurns(plain, done.plain - #plain)
  local turn, turns, isPlainOver = 0, {}, visible == 0 or done.isPlainOver
  for _, each in ipairs(done.given) do
    if not each.one.isPlain then
      turn = turn + 1
      hand(GROUPED, each.attempts, each.delivery, each.head.id, string.format('%.0f', each.head.at), each.head.record)
      handed = handed + 1
      turns[each.one.group] = turn
    elseif plain[1] then
      turn = turn + 1
      hand(unpack(table.remove(plain, 1)))
      handed = handed + 1
      turns[PLAIN] = turn
    else
      isPlainOver = not isFull
    end
  end
  local order = {}
  for _, one in ipairs(seats) do
    local name = one.isPlain and PLAIN or one.group
    if one.isPlain and isPlainOver then push(places.noTurns, PLAIN)
    elseif turns[name] and not one.hasLeft then push(order, name) end
  end
  table.sort(order, function(a, b) return turns[a] < turns[b] end)
  for _, name in ipairs(order) do push(places.turns, nextTurn(groups), name) end
  writePlaces(groups, places)
  local homes, isHome = {}, {}
  for _, each in ipairs(done.misplaced) do
    if each.group and not isHome[each.group] then
      isHome[each.group] = true
      push(homes, each.group)
    end
  end
  refreshGroups(groups, homes, {}, true)
  leastSlots = handed == before and 32 or 0
  return not isCut -- after large names the next poll goes on
end

-- Updates groups that wait for their rate and would, after the clock was set back, wait for the old time, which is later than any the rate
-- gives now. Groups with delayed messages have such times too, so it examines a few, in each millisecond others. Returns how many have a
-- turn now.
local function takeLate()
  local late = groups.rate and redis.call('ZCOUNT', groups.wakes, string.format('(%.0f', now + 1 + groups.rate.per), '+inf') or 0
  if late == 0 then return 0 end
  local from = redis.call('ZCARD', groups.wakes) - late + now % math.max(1, late - LATE + 1)
  local names, turns, moved = {}, {}, {}
  for _, group in ipairs(namesOf(LATE, function(many, rank) return redis.call('ZRANGE', groups.wakes, from + rank, from + rank + many - 1) end)) do
    -- a long one is another program's, and would be read by each poll
    if #group <= LONGEST_GROUP then push(names, group) else looked = looked + redis.call('ZREM', groups.wakes, group) end
  end
  local texts = statesOf(groups, names)
  for n, group in ipairs(names) do
    if readState(groups, texts[n]).window.isMoved then
      push(turns, nextTurn(groups), group)
      push(moved, group)
    end
  end
  if #moved > 0 then
    redis.call('ZADD', groups.turns, 'NX', unpack(turns))
    redis.call('ZREM', groups.wakes, unpack(moved))
  end
  return #moved
end

-- Corrects the claims of these groups, as far as they are full. Another program can have changed the counts, or removed claims. Beside at
-- most `FEW_CLAIMS` claims, or if `groups.looks`, it reads all claims, and can lower or raise a count. Otherwise it runs in one of seven
-- milliseconds, and stops when each group is known to be full; in one of 49 it reads all of them. It takes `LONGER` budgets at most. A
-- record that is too large to read counts as a claim of each group, but raises no count.
local function recount(names)
  local FEW_CLAIMS, SELDOM, RARELY, COUNTED, LONGER = 32, 7, 49, 40, 4
  local all = redis.call('ZCARD', inFlight)
  if not groups.concurrency or #names == 0 or all > FEW_CLAIMS and not groups.looks and now % SELDOM > 0 then return end
  if all > MOST then -- too many to count; claims without a message end, so that another program cannot keep them too many
    local from = math.floor(nowExact * 977) % all
    for _, member in ipairs(namesOf(COUNTED, function(many, rank) return redis.call('ZRANGE', inFlight, from + rank, from + rank + many - 1) end)) do
      local id = string.sub(member, 2)
      if redis.call('HEXISTS', messages, id) == 0 then
        forget({id})
        changed = changed + redis.call('ZREM', inFlight, member)
      end
    end
    return
  end
  local full, found, left = {}, {}, 0
  for n, text in ipairs(statesOf(groups, names)) do
    local state = readState(groups, text)
    if state.claims >= groups.concurrency and not found[names[n]] then
      push(full, {group = names[n], state = state})
      found[names[n]], left = 0, left + 1
    end
  end
  if left == 0 then return end
  local unread, read, from = 0, 0, 0
  local isWhole = all <= FEW_CLAIMS or groups.looks or now % RARELY == 0 -- else only until each group is known to be full
  while from < all do
    if left == 0 and not isWhole or elapsed() >= LONGER * budget then return end
    local members, areCut = namesOf(COUNTED, function(many, rank) return redis.call('ZRANGE', inFlight, from + rank, from + rank + many - 1) end)
    local removed = 0
    for _, member in ipairs(members) do
      local id = string.sub(member, 2)
      local size = #member <= LONGEST and redis.call('HSTRLEN', messages, id) or 0
      if size == 0 and (#member > LONGEST or redis.call('HEXISTS', messages, id) == 0) then -- another program's: it would be read again and again until its end
        forget({id})
        removed = removed + redis.call('ZREM', inFlight, member)
      elseif byte(member) == GROUP_BYTE then
        local isRead = read + size <= BYTES
        local group = isRead and groupOf(messages, id) or nil
        read, unread = read + (isRead and size or 0), unread + (isRead and 0 or 1)
        if found[group] then
          found[group] = found[group] + 1
          if found[group] == groups.concurrency then left = left - 1 end
        end
      end
    end
    changed, all, from = changed + removed, all - removed, from + #members - removed
    if areCut or #members == 0 then return end
  end
  local places = newPlaces()
  for _, each in ipairs(full) do
    local least, most = found[each.group], found[each.group] + unread
    if each.state.claims < least or each.state.claims > most then
      each.state.claims = math.min(math.max(each.state.claims, least), most)
      noteState(places, each.group, each.state.text, textOf(each.state))
    end
  end
  writePlaces(groups, places)
end

-- Adds some groups to `names`: goes to the group of a random message, from there over a random number of groups, and adds the next ones. So
-- neither a large backlog of one group hides the others, nor do those that follow it in the order.
local function walkGroups(names)
  local WALKED, MOST_SKIPPED, MOST_FOREIGN, AFTER = 8, 64, 8, string.rep('\255', 8) -- behind all places of a group
  local size, start, first, foreign = redis.call('ZCARD', groups.order), nil, nil, 0
  local at, skipped = size > 0 and math.floor(nowExact * 991) % size or 0, math.floor(nowExact * 983) % MOST_SKIPPED
  local member = redis.call('ZRANGE', groups.order, at, at)[1]
  for step = 1, MOST_SKIPPED + WALKED do
    member = member or redis.call('ZRANGE', groups.order, 0, 0)[1] -- round to the first
    if not member then return end
    local length = byte(member) or 0
    local group = string.sub(member, 2, 1 + length)
    local isForeign = length == 0 or #group < length -- no place begins so; what it seems to be the place of can lie before it
    if #member > largeNames.above then largeNames.bytes = largeNames.bytes + #member end
    if isForeign or #member > LONGEST then changed = changed + redis.call('ZREM', groups.order, member) end
    if step > skipped + WALKED then return end
    if not isForeign then
      if group == start and step <= skipped then skipped = step - 1 + (skipped - step + 1) % (step - 1) end -- there are fewer groups than it was to skip
      start = start or group
      if step > skipped then
        if group == first then return end
        first = first or group
        if #member <= LONGEST then push(names, group) end
      end
    end
    if largeNames.bytes > largeNames.most then return end
    foreign = foreign + (isForeign and 1 or 0)
    local low = '(' .. (isForeign and length > 0 and member or prefixOf(group) .. AFTER)
    -- among many such places the walk goes on behind all of their length, and then at the first
    local turn = isForeign and foreign % (2 * MOST_FOREIGN)
    if turn == MOST_FOREIGN and length == 255 then turn = 0 end
    if turn == MOST_FOREIGN then low = '[' .. string.char(length + 1) end
    member = turn ~= 0 and redis.call('ZRANGEBYLEX', groups.order, low, '+', 'LIMIT', 0, 1)[1] or nil
  end
end

-- Brings back messages that another program removed from the order, or put into a group that is none of theirs, and removes ids without a
-- message: examines a page of the visible messages, each time another one or the first, and the next ones while it finds some, or while the
-- order has fewer messages than the schedule. A large message, which has to be read whole for its group, is examined the more seldom the
-- larger it is. Adds to `names` the groups of those that it brings back, and a few others.
local function bringBack(names)
  local LARGE, FEW, MOST_PAGES = 65536, 8, 8
  local visible, isNamed = redis.call('ZCOUNT', groups.schedule, '-inf', now), {}
  local isLess = redis.call('ZCARD', groups.order) < redis.call('ZCARD', groups.schedule)
  local examined, together = isLess and 32 or 8, isLess and MOST_PAGES or 1
  -- it can end within its first page, so it does not always begin at the same messages
  local before = examined * together - 1
  local at = handed > 0 and now % 2 > 0 and 0 or math.max(0, math.floor(nowExact * 997) % (visible + before) - before)
  for _ = 1, MOST_PAGES do
    -- behind the visible messages are the delayed ones and those set aside, whose scores are no times, and whose ids it could not remove
    local most = math.min(examined, visible - at)
    if most <= 0 then return end
    local page = namesOf(most, function(many, rank) return redis.call('ZRANGE', groups.schedule, at + rank, at + rank + many - 1, 'WITHSCORES') end, 2)
    local gone, found = 0, 0
    for n = 1, #page, 2 do
      local id, visibleAt = page[n], tonumber(page[n + 1])
      if n > 1 and (bytes > BYTES or isOver()) then break end -- whatever has used up the time, each poll examines one
      local length = #id > LONGEST and 0 or redis.call('HSTRLEN', messages, id)
      local wasLost, hasLeft = false, false
      if length == 0 then
        wasLost, hasLeft = redis.call('ZREM', groups.schedule, id) == 1, true
        forget({id})
      elseif now % math.ceil(length / LARGE) == 0 then
        local group = groupOf(messages, id)
        wasLost, hasLeft = bringHome(group, math.ceil(visibleAt), id)
        if group and (wasLost or #names < FEW) and not isNamed[group] then
          isNamed[group] = true
          push(names, group)
        end
        bytes = bytes + length
      end
      found, gone = found + (wasLost and 1 or 0), gone + (hasLeft and 1 or 0)
    end
    changed, at, visible = changed + found, at + #page / 2 - gone, visible - gone
    if found == 0 and not isLess or bytes > BYTES or largeNames.bytes > largeNames.most or isOver() then return end
  end
end

takeTurns = function()
  of.bringTurns(groups)
  -- All groups whose time has come get a turn before a message is handed out: otherwise another group could have two turns while they wait
  -- for one. Their messages and limits are examined in their turn. One script gives turns to at most `MOST` groups; if there are more, it
  -- hands out nothing, and the next poll goes on; but behind many bytes of long names, which another program wrote, it hands out the
  -- messages of those that have a turn.
  local asleep, woken, areCut = redis.call('ZCOUNT', groups.wakes, '-inf', now), nil, false
  while asleep > 0 do
    woken, areCut = namesOf(TOGETHER, function(many, from) return redis.call('ZRANGEBYSCORE', groups.wakes, '-inf', now, 'LIMIT', from, many) end)
    local turns = {}
    for _, group in ipairs(woken) do
      if #group <= LONGEST_GROUP then push(turns, nextTurn(groups), group) end
    end
    if #turns > 0 then redis.call('ZADD', groups.turns, 'NX', unpack(turns)) end
    redis.call('ZREMRANGEBYRANK', groups.wakes, 0, #woken - 1)
    asleep, looked = asleep - #woken, looked + #woken
    if looked >= MOST or #woken == 0 or areCut or isOver() then break end
  end
  looked = looked + takeLate()
  arePlain = redis.call('EXISTS', unpack(due)) > 0
  local first = arePlain and earliest({unpack(due)}, LONGEST)
  if first and first <= now then redis.call('ZADD', groups.turns, 'NX', nextTurn(groups), PLAIN) end
  if isFull or asleep > 0 and not areCut then return end -- it hands out messages, though long names are left in `wakes`
  if not of.isOrdered(groups) then -- the next poll goes on
    changed = changed + 1
    handed = claimPlain(want, hand)
    return
  end
  local goesOn = true -- at least one round, whatever time has passed
  while goesOn do
    goesOn = takeRound() and not (isFull or handed >= want or looked >= MOST or isOver())
  end
  if handed == 0 and not isFull or groups.looks then -- one poll of thirty looks also if it finds others
    -- Another program can have removed or changed the places of messages, and the claims, turns and times of their groups and of others.
    local names = {}
    bringBack(names)
    walkGroups(names)
    recount(names)
    -- One by one: after too many bytes of large names a group would get a turn unseen, which the next poll takes, and so on. The bytes that
    -- were read to find the groups do not count, so that at least one of them is refreshed.
    local before = largeNames.bytes
    largeNames.bytes = 0
    for _, group in ipairs(names) do
      if largeNames.bytes > largeNames.most then break end
      if refreshGroup(groups, group) then changed = changed + 1 end
    end
    largeNames.bytes = largeNames.bytes + before
  end
end
end
