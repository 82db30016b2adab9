-- A step of reliable-poll.lua: returns messages that were not acknowledged in time to their schedules. Counts the returned messages
-- (`returned`) and the examined claims (`changed`).

-- A message is visible since its visibility ended.
local returned, changed, backBytes = 0, 0, 0
local freed, ends = {}, {} -- the groups, and the number of ended claims of each
local function takeBack(member, priority, id, ended)
  local group, size
  if priority == GROUPED then
    group, size = groupOf(messages, id)
    backBytes = backBytes + size
    if not group and not isSchedule(0) then
      redis.call('ZADD', inFlight, string.format('%.0f', now + LATER_MS), member)
      return
    end
  end
  local delivery = deliveryOf(deliveries, id)
  local attempts = attemptsOf(delivery)
  local isClaimed, isScheduled = delivery and string.find(delivery, ' ', 1, true), false
  if not isClaimed then
    local first, last = 0, #due -- 0: the messages with a group
    if isUnbegun(ended) then -- the last message of a batch: a foreign place of another priority must not hide it
      first = priority == GROUPED and 0 or priority + 1
      last = first
    end
    for n = first, last do isScheduled = isScheduled or type(redis.pcall('ZSCORE', due[n] or groups.schedule, id)) == 'string' end
  end
  -- another program wrote the end of this claim, or left it when it deleted a message and its attempts: the message stays where it waits
  if isScheduled then
    redis.call('ZREM', inFlight, member)
    return
  end
  if isUnbegun(ended) and not delivery and priority ~= GROUPED then -- the last message of a batch: no consumer had it
    redis.call('ZADD', due[priority + 1], string.format('%.0f', ended), id)
    redis.call('ZREM', inFlight, member)
    return
  end
  if isUnbegun(ended) then
    attempts = math.max(0, attempts - 1)
    redis.call('HSET', deliveries, id, string.format('%.0f~', attempts))
    ended = string.format('%.0f', ended)
    if log then noteChange(log, changeHead('l', attempts, ended), id) end
  else
    local stays = delivery and string.find(delivery, ' ~', 1, true) and '~' or '' -- it may have killed its process
    redis.call('HSET', deliveries, id, attempts .. stays)
    noteFailure(failures, id, attempts, now, '"its visibility ended"')
    if log then noteChange(log, changeHead('f', attempts, ended), id, '"its visibility ended"') end
  end
  if group then addToGroup(groups, group, math.ceil(tonumber(ended)), id)
  else redis.call('ZADD', due[priority == GROUPED and 1 or priority + 1], ended, id) end
  redis.call('ZREM', inFlight, member)
  if group and not ends[group] then freed[#freed + 1] = group end
  -- Without a token no poll claimed it, or another program deleted its token. So it does not end a claim of its group: polls lower a count
  -- that is too high, but raise one that is too low only where the group looks full.
  if group then ends[group] = (ends[group] or 0) - (isClaimed and 1 or 0) end
  returned = returned + 1
end

-- few at first, because their size is unknown before they are read
local step, isLast = largeNames.few, false
while not isLast do
  local back = redis.call('ZRANGEBYSCORE', inFlight, '-inf', now, 'WITHSCORES', 'LIMIT', 0, step)
  isLast = #back < 2 * step
  local gone, members = {}, {}
  for at = 1, #back, 2 do
    local member, ended = back[at], back[at + 1]
    local priority, id = priorityOf(member), string.sub(member, 2)
    changed = changed + 1
    if redis.call('HEXISTS', messages, id) == 0 then
      gone[#gone + 1], members[#members + 1] = id, member
    elseif priority == GROUPED and canGroup() or priority ~= GROUPED and isSchedule(priority) then
      takeBack(member, priority, id, ended)
    else
      redis.call('ZADD', inFlight, string.format('%.0f', now + LATER_MS), member)
    end
    backBytes = backBytes + #member
    isLast = isLast or returned >= MOST_BACK or changed >= MOST
    if backBytes > BYTES or isOver() then
      isLast = true
      break
    end
  end
  if #gone > 0 then
    forget(gone)
    redis.call('ZREM', inFlight, unpack(members))
  end
  step = math.max(1, math.min(largeNames.page, MOST_BACK - returned))
end
refreshGroups(groups, freed, ends)
