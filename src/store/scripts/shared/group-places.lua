-- The places of messages that leave a group or get another place. A script that moves a message writes its new place first, and then
-- removes what is left of the former one: so after an error it is not lost. Polls remove a member of `order` whose message is at another
-- time. Needs shared/groups.lua.

-- The member in `order` of a message that waits in a group, or nil.
local function placeNow(groups, group, id)
  local at = redis.call('ZSCORE', groups.schedule, id)
  return at and placeOf(group, tonumber(at), id) or nil
end

-- Removes the former place of a message. `place`: its new one in `order`, or nil if it no longer waits in a group.
local function leavePlace(groups, former, place, id)
  if former == place then return end
  redis.call('ZREM', groups.order, former)
  if not place then redis.call('ZREM', groups.schedule, id) end
end

local function takeFromGroup(groups, group, id)
  local former = placeNow(groups, group, id)
  if former then leavePlace(groups, former, nil, id) end
end
