-- Removes the entries that all groups have acknowledged, but for the last of these: by it a reader finds out that nothing is missing.
-- Without a group everything stays, and with more than MOST_GROUPS. Returns how many groups there are.
local function trimChanges(stream)
  local groups, count = groupsOf(stream)
  local lowest, isUnread
  for _, group in ipairs(groups) do
    local id = group.first or group.last
    if not lowest or isBefore(id, lowest) then
      lowest, isUnread = id, group.first ~= nil
    elseif id == lowest then
      isUnread = isUnread or group.first ~= nil
    end
  end
  if not lowest then return count end
  if isUnread then
    local before = redis.call('XREVRANGE', stream, '(' .. lowest, '-', 'COUNT', 1)[1]
    if before then lowest = before[1] end
  end
  redis.call('XTRIM', stream, 'MINID', lowest)
  return count
end
