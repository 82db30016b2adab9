-- Forgets what another program, or a lost record, has left under the ids of new messages: earlier attempts would count as theirs, and the
-- end of an earlier delivery would end them. A key of another type has nothing of theirs. Runs after the writes that add them: after one
-- that takes no memory Redis would not refuse the others at maxmemory. The end of a delivery without attempts is left: no consumer can end
-- the message by it, and a poll removes it when its time has come. Needs memberOf of shared/groups.lua.
local MEMBERS = 11
local function forgetLeftBehind(deliveries, inFlight, ids)
  local left = redis.pcall('HDEL', deliveries, unpack(ids))
  if type(left) ~= 'number' or left == 0 then return end
  for _, id in ipairs(ids) do
    local members = {}
    for priority = 0, MEMBERS - 1 do members[priority + 1] = memberOf(priority, id) end
    redis.pcall('ZREM', inFlight, unpack(members))
  end
end
