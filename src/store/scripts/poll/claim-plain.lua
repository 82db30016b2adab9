-- A part of reliable-poll.lua: `claimPlain` claims at most `most` messages without a group, those of the highest priority first, calls
-- `give` with each one's part of the reply, and returns how many it claimed.

local byte = string.byte
local function claimPlain(most, give)
  local total = 0
  for at = #due, 1, -1 do
    local digit = tostring(at - 1)
    while not isFull do
      local ids, times, areLong = visibleOf(at, math.min(math.max(most - total, least), 100))
      if #ids == 0 then
        isFull = areLong
        break
      end
      local records, delivered, fits = fitting(ids)
      isFull = fits < #ids or areLong
      if fits == 0 then break end
      while #ids > fits do ids[#ids] = nil end
      looked = looked + #ids
      local claimed, written, given, kept, strangers = {}, {}, 0, nil, nil
      for n, id in ipairs(ids) do
        if total + given == most then
          for after = #ids, n, -1 do ids[after] = nil end
          break
        end
        local record, attempts = records[n], delivered[n] and attemptsOf(delivered[n]) or 0
        if not record then -- the schedule has an id without a message
          strangers = strangers or {}
          strangers[#strangers + 1] = id
        else
          local expires, limit, outcome -- most records have no meta data, and most messages do not end here
          if byte(record) ~= 0 then expires, limit = readMeta(record) end
          if expires and expires <= now or attempts >= (limit or limitOfAll) then outcome = endOf(id, attempts, expires, limit) end
          local score = asideOf and not outcome and asideOf(record, at - 1, times[n])
          if outcome == 'kept' or score then
            kept = kept or {}
            kept[#kept + 1], kept[#kept + 2] = score or string.format('%.0f', now + LATER_MS), id
          elseif not outcome then
            local delivery = delivered[n] and isSuspect(delivered[n]) and attempts + 1 .. ' ~' .. token or byAttempt[attempts + 1]
              or newDelivery(attempts + 1)
            local odd, even = 2 * given + 1, 2 * given + 2
            claimed[odd], claimed[even], written[odd], written[even] = ending, digit .. id, id, delivery
            given = given + 1
            give(at - 1, attempts + 1, delivery, id, times[n], record)
          end
        end
      end
      if given > 0 then
        redis.call('ZADD', inFlight, unpack(claimed))
        if given >= MANY then
          redis.call('HSET', deliveries, written[1], LONG, unpack(written))
        else
          redis.call('HSET', deliveries, unpack(written))
        end
      end
      if strangers then forget(strangers) end
      if kept then redis.call('ZADD', due[at], unpack(kept)) end -- to times after now
      local leaving = #ids - (kept and #kept / 2 or 0)
      if leaving > 0 then redis.call('ZREMRANGEBYRANK', due[at], 0, leaving - 1) end -- these are its first ones; after an error above they are still there
      total = total + given
      if given == 0 then least = 100 end
      isFull = isFull or total >= most or looked >= MOST or isOver()
    end
  end
  return total
end
