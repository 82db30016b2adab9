-- Whether a message is in a schedule or in flight. A key of another type may have the message. Needs shared/locate.lua.
local function isPlaced(due, inFlight, id)
  local isKnown, priority = pcall(locate, due, inFlight, id)
  return not isKnown or priority ~= nil
end
