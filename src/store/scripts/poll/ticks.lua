-- A step of reliable-poll.lua: adds the repeats whose tick has come to the reply, so that the caller prepares their next messages. Sets
-- `ticking`, their names.

local ticking = {}
if settings.pollPaused ~= '1' then
  ticking = namesOf(10, function(many, from) return redis.pcall('ZRANGEBYSCORE', ticks, '-inf', now, 'LIMIT', from, many) end)
end
if ticking.err then note('the times of repeats', ticking.err) end
do
  local prepared = 0 -- bytes
  local AGAIN_MS = 5000 -- not LATER_MS: each schedule would stop for a minute after a moment in which the key had another type
  for _, name in ipairs(ticking) do
    if prepared >= BYTES then break end -- the others stay due
    local length = redis.pcall('HSTRLEN', repeats, name)
    if type(length) == 'table' then
      note('the repeats', length.err)
      redis.call('ZADD', ticks, string.format('%.0f', now + AGAIN_MS), name)
    elseif length > largestRepeat then
      redis.call('ZREM', ticks, name)
      reply[8], prepared = reply[8] + 1, prepared + #name
      reply[#reply + 1], reply[#reply + 2] = name, false
    else
      local value = redis.call('HGET', repeats, name)
      if value then
        redis.call('ZADD', ticks, string.format('%.0f', now + PREPARE_MS), name)
        reply[8], prepared = reply[8] + 1, prepared + length + #name
        reply[#reply + 1], reply[#reply + 2] = name, value
      else
        redis.call('ZREM', ticks, name)
      end
    end
    changed = changed + 1
  end
end
