-- A step of reliable-poll.lua: moves messages of resumed tasks back to their places, in order, and leaves time for the rest of the
-- poll. Sets `asideOf`, which decides whether a message of a paused task has to be set aside; `aside.areBack`: some have come
-- back; `aside.isMore`: the next poll brings back more.

local asideOf
if settings.tasks then -- most queues pause no task
  local MOST_GIVEN, TOGETHER_GIVEN, MOST_RESUMED, MOST_HEADERS, LONGEST_TASK = 500, 100, 16, 65536, 255
  local pauses = groups.tasks
  local byte, find, sub = string.byte, string.find, string.sub
  local known = redis.pcall('ZCOUNT', pauses, 1, aside.resumed + aside.most)
  if type(known) == 'table' then note('the paused tasks', known.err) end

  -- Messages with a group can come back only while the keys of groups are usable. No poll waits for them before that; a later poll finds
  -- them.
  local schedules = isGrouped and {groups.schedule, unpack(due)} or due

  -- Returns whether all of them are back, and how many have come back now. Reads the records of messages with a group, which can be large.
  local function giveBack(low, high)
    local given, read, names, namedEnds = 0, 0, {}, {}
    for at = GROUPED + 1, 1, -1 do
      local schedule = at <= 10 and due[at] or at > 10 and isGrouped and groups.schedule
      while schedule do
        local page = namesOf(TOGETHER_GIVEN, function(many, from)
          return redis.pcall('ZRANGEBYSCORE', schedule, low, high, 'WITHSCORES', 'LIMIT', from, many)
        end, 2)
        if page.err or #page == 0 then break end
        local pairsOf = {}
        for n = 1, #page, 2 do
          if read > BYTES then break end
          local id, time = page[n], string.format('%.0f', aside.whenOf(tonumber(page[n + 1])))
          local group, size
          if at > 10 then group, size = groupOf(messages, id) end
          given, read, aside.areBack = given + 1, read + #id + (size or 0), true
          if group then
            addToGroup(groups, group, tonumber(time), id)
            redis.call('ZREM', groups.order, placeOf(group, aside.from, id))
            if not namedEnds[group] then names[#names + 1] = group end
            namedEnds[group] = 0
          else
            pairsOf[#pairsOf + 1], pairsOf[#pairsOf + 2] = time, id
          end
        end
        if #pairsOf > 0 then redis.call('ZADD', schedule, unpack(pairsOf)) end
        if given >= MOST_GIVEN or read > BYTES or isOver() then break end
      end
      if given >= MOST_GIVEN or read > BYTES or given > 0 and isOver() then break end
    end
    refreshGroups(groups, names, namedEnds)
    changed = changed + given
    for _, schedule in ipairs(schedules) do
      local left = redis.pcall('ZCOUNT', schedule, low, high)
      if type(left) == 'number' and left > 0 then return false, given end
    end
    return true, given
  end

  -- The text of a message's headers, if it can name a task; `taskIn` reads the task in such a text.
  local function headersOf(record)
    if byte(record) == 0 then return nil end
    local _, _, headers, rest = readMeta(record)
    if headers == 0 or headers > MOST_HEADERS then return nil end
    local text = sub(record, rest, rest + headers - 1)
    return find(text, '"task"', 1, true) and text
  end

  local function taskIn(text)
    local isRead, headers = pcall(cjson.decode, text)
    local task = isRead and type(headers) == 'table' and headers.task
    return type(task) == 'string' and #task <= LONGEST_TASK and task or ''
  end

  -- The task of one of the messages that are set aside under a number; nil if there is none, or a large one, as each paused task of a page
  -- may be asked for.
  local MOST_OWNER = 65536
  local function ownerOf(number)
    local low, high = aside.range(number)
    for _, schedule in ipairs(schedules) do
      -- none once the script has read too many bytes of large names
      local id = namesOf(1, function() return redis.pcall('ZRANGEBYSCORE', schedule, low, high, 'LIMIT', 0, 1) end, 1, true)[1]
      local record = id and redis.call('HSTRLEN', messages, id) <= MOST_OWNER and redis.call('HGET', messages, id)
      local text = record and headersOf(record)
      if text then return taskIn(text) end
    end
  end

  -- Returns the number of a paused task. Another program can have given two tasks one number, or removed a task whose messages are still
  -- set aside under its number. Then the messages of both would come back, and stay, together. So a task that does not own the messages
  -- there gets another number.
  local function ownNumber(task, number)
    local owner = ownerOf(number)
    if owner == task or not owner and aside.holders(pauses, number) == 1 then return number end
    local free = aside.free(pauses)
    if free then redis.call('ZADD', pauses, free, task) end
    return free or number
  end

  -- Separates a resumed task from a paused task with the same number. Returns whether the number is its own now.
  local function part(task, number)
    local paused = redis.call('ZRANGEBYSCORE', pauses, number, number, 'LIMIT', 0, 1)[1]
    if not paused then return true end
    changed = changed + 1
    if #paused > LONGEST_TASK then
      redis.call('ZREM', pauses, paused)
      return false
    end
    local free = ownerOf(number) ~= paused and aside.free(pauses)
    if free then redis.call('ZADD', pauses, free, paused) else redis.call('ZREM', pauses, task) end
    return false
  end

  local resumed = known ~= 0 and namesOf(MOST_RESUMED, function(many, from)
    return redis.pcall('ZRANGEBYSCORE', pauses, aside.resumed + 1, aside.resumed + aside.most, 'WITHSCORES', 'LIMIT', from, many)
  end, 2) or {}
  if known == 0 then -- also what is left of a task that another program has taken out of the paused ones
    aside.isMore = not giveBack(aside.text, aside.to)
    if not aside.isMore then redis.call('HDEL', config, 'tasks') end
  elseif #resumed > 0 then
    for n = 1, #resumed, 2 do -- one that cannot come back, such as for a key of another type, keeps back no other
      local task, number, areAllBack, given = resumed[n], tonumber(resumed[n + 1]) - aside.resumed, true, 0
      -- another program can have written any name and number; messages under such a number come back as messages of no task
      local isTask = #task <= LONGEST_TASK and number % 1 == 0
      if not isTask or part(task, number) then
        if isTask then areAllBack, given = giveBack(aside.range(number)) end
        if areAllBack then changed = changed + redis.call('ZREM', pauses, task) end
      end
      if given > 0 or isOver() then break end
    end
    aside.isMore = redis.call('ZCOUNT', pauses, aside.resumed + 1, aside.resumed + aside.most) > 0
  end

  local byHeaders, numbers = {}, {}
  local function numberOf(text)
    if byHeaders[text] ~= nil then return byHeaders[text] end
    local task = taskIn(text)
    if numbers[task] == nil then
      local found = tonumber(redis.call('ZSCORE', pauses, task) or 0)
      local isPaused = found % 1 == 0 and found >= 1 and found <= aside.most
      local isComingBack = found % 1 == 0 and found > aside.resumed and found <= aside.resumed + aside.most
      numbers[task] = isPaused and ownNumber(task, found) or isComingBack and aside.holders(pauses, found - aside.resumed) == 1 and found
    end
    byHeaders[text] = numbers[task]
    return numbers[task]
  end

  -- The score of a message that has to be set aside. So has one of a resumed task while an older one of the task has not come back yet, to
  -- keep the order. The older ones are counted, not read, because an id can have any size.
  local function scoreOf(record, priority, at)
    local text = headersOf(record)
    local task = text and numberOf(text)
    if not task then return nil end
    at = math.max(0, math.min(math.floor(tonumber(at)), aside.span - 1))
    local isResumed = task > aside.resumed
    if isResumed then task = task - aside.resumed end
    local score = string.format('%.0f', aside.from + 2 * (task * aside.span + at))
    if isResumed then
      if redis.call('ZCOUNT', priority == GROUPED and groups.schedule or due[priority + 1], aside.range(task), '(' .. score) == 0 then return nil end
      aside.isMore = true
    end
    return score
  end

  -- Gives back the messages that are set aside under numbers of no task: another program has removed the tasks from the paused ones. It
  -- halves the numbers where some have a task and some may not, a bounded number of times. `randomBits` has a bit per level, and says which
  -- half is searched first: they come from the clock, so that bounded searches reach every number in time. Returns whether any message came
  -- back.
  local MOST_HALVES, halves = 64, 0
  local function giveBackUnowned(least, most, among, randomBits)
    if halves == MOST_HALVES or isOver() then return false end
    halves = halves + 1
    local low = aside.range(least)
    local _, high = aside.range(most)
    local some = {}
    for _, schedule in ipairs(among) do
      local count = redis.pcall('ZCOUNT', schedule, low, high)
      if type(count) == 'number' and count > 0 then some[#some + 1] = schedule end
    end
    if #some == 0 then return false end
    local tasks = redis.call('ZCOUNT', pauses, least, most) + redis.call('ZCOUNT', pauses, aside.resumed + least, aside.resumed + most)
    if tasks == 0 then
      local _, given = giveBack(low, high)
      return given > 0
    end
    if least == most then return false end
    local middle, rest = math.floor((least + most) / 2), math.floor(randomBits / 2)
    local isLow = randomBits % 2 == 0 and giveBackUnowned(least, middle, some, rest)
    local isHigh = giveBackUnowned(middle + 1, most, some, rest)
    return randomBits % 2 == 1 and giveBackUnowned(least, middle, some, rest) or isLow or isHigh
  end
  aside.giveBackUnowned = function() return giveBackUnowned(0, aside.most, schedules, started) end

  if type(known) == 'number' and known > 0 then asideOf = scoreOf end
end
