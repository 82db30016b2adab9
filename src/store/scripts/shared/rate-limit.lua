-- At most `max` claims in any period of `per` milliseconds. The claims of the last period are stored as "<how many>@<when, epoch ms> ",
-- those of one thirty-second of it together, as if all were at the last of them: so the text stays short, and there are never more than
-- `max`.
local CELLS, LONGEST_WINDOW = 32, 1024
local function rateOf(text)
  if type(text) ~= 'string' then return nil end
  local most, per = string.match(text, '^(%d+)/(%d+)$')
  most, per = setting(most, 1, MOST_CLAIMS), setting(per, 1, LONGEST_PER_MS)
  return most and per and {max = most, per = per}
end

-- Reads the claims of the last period from `text`. After the clock was set back, later claims count as of now: `isMoved`, and the script
-- writes them so, or they would count as of each later read. Of a text that another program has written it adds up what lies in one cell,
-- and what lies behind too many, as of the last of them: else the scripts could write more than they read.
local function windowOf(rate, text, now)
  local window, cell = {sum = 0}, rate.per / CELLS
  for many, at in string.gmatch(text, '(%d+)@(%d+) ') do
    many, at = #many <= 16 and math.min(tonumber(many), MOST_CLAIMS) or 0, #at <= 16 and tonumber(at) or 0
    if many > 0 and math.min(at, now + 1) + rate.per > now then
      local last = window[#window]
      window.isMoved = window.isMoved or at > now + 1
      at = math.min(at, now + 1)
      if last and (#window > CELLS or math.floor(last.at / cell) == math.floor(at / cell)) then last.many, last.at = last.many + many, math.max(last.at, at)
      else window[#window + 1] = {many = many, at = at} end
      window.sum = window.sum + many
    end
  end
  return window
end

local function addClaims(rate, window, many, at)
  local last, cell = window[#window], rate.per / CELLS
  window.sum = window.sum + many
  if last and math.floor(last.at / cell) == math.floor(at / cell) then
    last.many, last.at = last.many + many, at
  else
    window[#window + 1] = {many = many, at = at}
  end
end

local function windowText(window)
  local parts = {}
  for n, each in ipairs(window) do parts[n] = string.format('%.0f@%.0f ', each.many, each.at) end
  return table.concat(parts)
end

-- When the next claim is allowed; nil for now.
local function opensAt(rate, window)
  local left = window.sum
  if left < rate.max then return nil end
  for _, each in ipairs(window) do
    left = left - each.many
    if left < rate.max then return each.at + rate.per end
  end
end
